// Loads DuckDB's TPC-H and TPC-DS generators. The library of the Go bindings contains them but does not load them, and
// comes without C++ headers, so the two classes are declared here as far as they are used. What is assumed of their
// layout holds for the DuckDB version in go.mod; TestLayout guards it.
#include <string>

namespace duckdb {
class DatabaseInstance;
class ExtensionLoader {
public:
	ExtensionLoader(DatabaseInstance &db, const std::string &name);
	void FinalizeLoad();

private:
	char members[4096]; // more than the class has
};
} // namespace duckdb

extern "C" void tpch_duckdb_cpp_init(duckdb::ExtensionLoader &loader);
extern "C" void tpcds_duckdb_cpp_init(duckdb::ExtensionLoader &loader);

// database is a duckdb_database: a pointer to a struct that begins with a pointer to a DuckDB object, which begins
// with a pointer to the DatabaseInstance. Returns 0, or 1 when DuckDB throws.
extern "C" int manta_load_tpc(void *database) {
	void *duckdb_object = *static_cast<void **>(database);
	auto *instance = *static_cast<duckdb::DatabaseInstance **>(duckdb_object);
	try {
		duckdb::ExtensionLoader tpch(*instance, "tpch");
		tpch_duckdb_cpp_init(tpch);
		tpch.FinalizeLoad();
		duckdb::ExtensionLoader tpcds(*instance, "tpcds");
		tpcds_duckdb_cpp_init(tpcds);
		tpcds.FinalizeLoad();
	} catch (...) {
		return 1;
	}
	return 0;
}
