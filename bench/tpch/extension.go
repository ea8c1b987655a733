package tpch

/*
int manta_load_tpch(void *database);
*/
import "C"

import (
	"errors"

	"manta/planner/kernel"
)

// openGenerator opens an instance that has dbgen, tpch_queries and tpch_answers.
func openGenerator(c kernel.Config) (*kernel.DB, error) {
	db, err := kernel.Open(c)
	if err != nil {
		return nil, err
	}
	if C.manta_load_tpch(db.Handle()) != 0 {
		_ = db.Close()
		return nil, errors.New("tpch: DuckDB refuses its TPC-H extension")
	}
	return db, nil
}
