package dist

import "manta/planner/plan"

// pureFunctions are the table functions whose rows follow from their arguments
// and files alone. Any other may tell of the catalog or the settings of the
// session that runs it, which are not those of the session that planned it.
var pureFunctions = map[string]bool{
	"range": true, "generate_series": true, "unnest": true, "repeat": true, "repeat_row": true, "summary": true, "glob": true,
	"parquet_metadata": true, "parquet_schema": true, "parquet_file_metadata": true, "parquet_kv_metadata": true,
	"read_text": true, "read_blob": true, "json_each": true, "json_tree": true,
}

// sessionFunctions read or change what only the planning session has.
var sessionFunctions = map[string]bool{
	"nextval": true, "currval": true, "getvariable": true, "current_setting": true, "current_schema": true, "current_schemas": true,
	"current_database": true, "in_search_path": true, "txid_current": true, "setseed": true,
}

// needsSession reports an expression that only the planning session can compute, as a *plan.UnsupportedError.
func needsSession(root plan.Node) error {
	var err error
	plan.Walk(root, func(n plan.Node) bool {
		for _, e := range plan.Exprs(n) {
			plan.WalkExpr(e, func(e plan.Expr) bool {
				if f, ok := e.(*plan.Func); ok && sessionFunctions[f.Name] {
					err = &plan.UnsupportedError{What: "function " + f.Name + ", which asks the session"}
				}
				return err == nil
			})
		}
		return err == nil
	})
	return err
}
