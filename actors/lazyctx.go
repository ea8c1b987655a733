package actors

import (
	"context"
	"sync"
	"time"
)

// lazyContext is the context of an attempt. What it costs to be cancelled is spent when somebody asks: most tasks end before.
type lazyContext struct {
	parent context.Context
	client *Client

	mu     sync.Mutex
	real   context.Context         // guarded by mu
	end    context.CancelCauseFunc // guarded by mu
	cause  error                   // guarded by mu; it ended before real was made
	ending bool                    // guarded by mu
}

// inner gives the context that does the work.
func (c *lazyContext) inner() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.real == nil {
		c.real, c.end = context.WithCancelCause(c.parent)
		if c.ending {
			c.end(c.cause)
		}
	}
	return c.real
}

// cancel ends the context; the first cause counts.
func (c *lazyContext) cancel(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end != nil {
		c.end(cause)
	} else if !c.ending {
		c.ending, c.cause = true, cause
	}
}

func (c *lazyContext) Deadline() (time.Time, bool) { return time.Time{}, false }
func (c *lazyContext) Done() <-chan struct{}       { return c.inner().Done() }

func (c *lazyContext) Err() error {
	c.mu.Lock()
	idle := c.real == nil && !c.ending
	c.mu.Unlock()
	if idle {
		return c.parent.Err()
	}
	return c.inner().Err()
}

func (c *lazyContext) Value(key any) any {
	if _, ok := key.(clientKey); ok {
		return c.client
	}
	return c.inner().Value(key)
}
