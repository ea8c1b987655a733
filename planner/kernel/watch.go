package kernel

import (
	"context"
	"time"

	duckdb "github.com/duckdb/duckdb-go-bindings"
)

// interruptEvery is how often an interrupt is repeated until the query has seen it: DuckDB clears the flag when a
// statement starts, so one that comes a moment too early is lost.
const interruptEvery = 5 * time.Millisecond

// watch interrupts a connection once a context ends.
type watch struct {
	stop   func() bool
	over   chan struct{} // closed when the query is over
	exited chan struct{} // closed when the interrupting goroutine has ended
}

func startWatch(ctx context.Context, conn duckdb.Connection) *watch {
	w := &watch{over: make(chan struct{}), exited: make(chan struct{})}
	w.stop = context.AfterFunc(ctx, func() {
		defer close(w.exited)
		tick := time.NewTicker(interruptEvery)
		defer tick.Stop()
		for {
			select {
			case <-w.over:
				return
			default:
			}
			duckdb.Interrupt(conn)
			select {
			case <-w.over:
				return
			case <-tick.C:
			}
		}
	})
	return w
}

// end returns when no further interrupt can come.
func (w *watch) end() {
	close(w.over)
	if !w.stop() {
		<-w.exited
	}
}
