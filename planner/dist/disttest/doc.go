// Package disttest helps to test distributed plans: a [Rig] runs them without a
// cluster, [Mutants] are plans with one mistake in them, and a [Proof] tells why a
// mutant gives the same rows all the same.
//
// Only tests import it.
package disttest
