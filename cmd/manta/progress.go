package main

import (
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"manta/planner"
)

// showProgress shows, on a terminal and after half a second, how many of a
// query's tasks have ended. The returned function clears the line; it may be
// called more than once.
func showProgress(r *planner.Result) (stop func()) {
	if !term.IsTerminal(int(os.Stderr.Fd())) {
		return func() {}
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		start, shown := time.Now(), false
		for {
			select {
			case <-quit:
				if shown {
					fmt.Fprint(os.Stderr, "\r\x1b[K")
				}
				return
			case <-tick.C:
			}
			if ended, total := r.Progress(); total > 0 && time.Since(start) > 500*time.Millisecond {
				fmt.Fprintf(os.Stderr, "\r%d of %d tasks, %.0f s ", ended, total, time.Since(start).Seconds())
				shown = true
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(quit)
		<-done
	})
}
