package tpc

/*
int manta_load_tpc(void *database);
*/
import "C"

import (
	"errors"

	"manta/planner/kernel"
)

// openGenerator opens an instance that has the generators, queries and answers of both benchmarks.
func openGenerator(c kernel.Config) (*kernel.DB, error) {
	db, err := kernel.Open(c)
	if err != nil {
		return nil, err
	}
	if C.manta_load_tpc(db.Handle()) != 0 {
		_ = db.Close()
		return nil, errors.New("tpc: DuckDB refuses its TPC extensions")
	}
	return db, nil
}
