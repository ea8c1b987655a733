package tpch

// Rule says what may differ between two right results of a query.
type Rule struct {
	// Order are the columns, from 0, of the ORDER BY. The sequence of their values is part of the result.
	Order []int
	// Divided are the DOUBLE columns that end in a division, where Tolerance applies.
	Divided []int
}

// Rules are the rules of query n at index n-1, read off the texts of the queries. The five queries with LIMIT (2, 3,
// 10, 18, 21) are compared strictly too: their order keys leave no ties at the cut in generated data.
var Rules = [NumQueries]Rule{
	{Order: []int{0, 1}, Divided: []int{6, 7, 8}}, // three averages
	{Order: []int{0, 2, 1, 3}},
	{Order: []int{1, 2}},
	{Order: []int{0}},
	{Order: []int{1}},
	{},
	{Order: []int{0, 1, 2}},
	{Order: []int{0}, Divided: []int{1}}, // a share
	{Order: []int{0, 1}},
	{Order: []int{2}},
	{Order: []int{1}},
	{Order: []int{0}},
	{Order: []int{1, 0}},
	{Divided: []int{0}}, // a percentage
	{Order: []int{0}},
	{Order: []int{3, 0, 1, 2}},
	{Divided: []int{0}}, // a seventh
	{Order: []int{4, 3}},
	{},
	{Order: []int{0}},
	{Order: []int{1, 0}},
	{Order: []int{0}},
}
