package tpc

import "sync"

// Suite is one of the two benchmarks. It is immutable.
type Suite struct {
	Name       string   // tpch or tpcds
	Title      string   // TPC-H or TPC-DS
	Tables     []string // the largest first
	NumQueries int      // query n is at index n-1

	generator string  // DuckDB's function
	stepScale int     // scale factor generated at once; 0: the generator makes all in one step
	minScale  float64 // below it the generator does not end
	answers   bool    // there are official answers that CompareAnswer can read
	texts     func() (*texts, error)
}

// H is TPC-H.
var H = suite(Suite{
	Name: "tpch", Title: "TPC-H", NumQueries: 22, generator: "dbgen", stepScale: 10, answers: true,
	Tables: []string{"lineitem", "orders", "partsupp", "part", "customer", "supplier", "nation", "region"},
})

// DS is TPC-DS.
var DS = suite(Suite{
	Name: "tpcds", Title: "TPC-DS", NumQueries: 99, generator: "dsdgen", minScale: 0.01,
	Tables: []string{
		"store_sales", "catalog_sales", "web_sales", "inventory", "store_returns", "catalog_returns", "web_returns", "customer",
		"customer_demographics", "customer_address", "item", "date_dim", "time_dim", "catalog_page", "household_demographics",
		"promotion", "store", "web_page", "web_site", "call_center", "warehouse", "ship_mode", "income_band", "reason",
	},
})

func suite(s Suite) *Suite {
	s.texts = sync.OnceValues(s.readTexts)
	return &s
}
