package dist

import (
	"manta/planner/kernel"
	"manta/planner/plan"
)

// travelType is the type that a column of type t has in an exchange: its own,
// but for an ENUM, which travels as its text and is an ENUM again behind it.
func travelType(t plan.Type) plan.Type {
	if t.ID == "ENUM" {
		return plan.Varchar
	}
	if t.Child != nil {
		c := travelType(*t.Child)
		t.Child = &c
	}
	if t.Fields != nil {
		fields := make([]plan.Field, len(t.Fields))
		for i, f := range t.Fields {
			fields[i] = plan.Field{Name: f.Name, Type: travelType(f.Type)}
		}
		t.Fields = fields
	}
	return t
}

// Travels reports the first type of an edge that no exchange can carry, as a *plan.UnsupportedError.
func (p *Plan) Travels() error {
	for _, s := range p.Stages {
		for _, e := range s.Outputs {
			for _, k := range e.Keep {
				if _, ok := kernel.ExchangeType(e.Types[k].String()); !ok || e.To != nil && !e.Types[k].Spellable() {
					return &plan.UnsupportedError{What: "a column of type " + e.Types[k].String() + " in an exchange"}
				}
			}
		}
	}
	return nil
}

// TravelTypes are the types of the columns that an edge carries, as they travel.
func (e *Edge) TravelTypes() []string {
	out := make([]string, len(e.Keep))
	for i, k := range e.Keep {
		out[i] = travelType(e.Types[k]).String()
	}
	return out
}
