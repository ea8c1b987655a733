package credit

// Lane is what a producer knows of its way to one partition.
type Lane struct {
	Shut    bool // the reader has enough
	Idle    bool // the reader is there and took all that was sent
	Pending bool // batches wait for credit, in memory
	Parked  bool // batches wait for credit, on disk
}

// Jammed says that a producer that is full must not wait: a reader of its has taken everything and waits for more, while
// what is pending is for others, which take nothing. Waiting for those could be for ever: see package shuffle's parking.
func Jammed(lanes []Lane) bool {
	waits, stalled := false, false
	for _, l := range lanes {
		waits = waits || !l.Shut && l.Idle && !l.Pending && !l.Parked
		stalled = stalled || l.Pending
	}
	return waits && stalled && !off[disorder]
}
