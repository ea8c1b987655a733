package credit

// hazard is a way in which exchanges come to a standstill or to a wrong result, by its number in the project's notes. Each has
// its counter-measure, which a test of this package may switch off to show that the trouble is real and is noticed.
type hazard int

const (
	disorder hazard = 3  // readers wait for each other through their producers
	closing  hazard = 4  // a reader that has enough keeps credit and bytes
	skew     hazard = 6  // one slow partition takes all of the memory
	short    hazard = 7  // a channel that lost batches ends as if it were complete
	oversize hazard = 12 // a batch that is larger than any window
	stale    hazard = 13 // an old grant arrives after a newer one
	starved  hazard = 14 // no memory is left for a channel
)

// off are the counter-measures that are switched off: none, but in tests.
var off [15]bool
