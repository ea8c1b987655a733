package actors

import (
	"context"
	"strconv"
	"time"

	"manta/actors/core"
)

// returnAfter is for how long tasks may stand behind slow ones here before the head gets them back.
const returnAfter = 25 * time.Millisecond

// workers run the node's tasks that want one CPU, each worker one after the other, with a slot of the node's. A task that waits gives its
// worker's slot back; another worker goes on with the queue meanwhile.
type workers struct {
	rt *engine
	// guarded by rt.mu:
	queue  []*attempt // in order; those that are no longer queued were cancelled
	active int        // workers that are not waiting
	begun  uint64     // tasks
	names  int
	timer  *time.Timer // looks whether the queue stands still
	seen   uint64      // begun, at the last look
}

// put queues an attempt. It runs under rt.mu.
func (w *workers) put(a *attempt) {
	a.queued = true
	w.queue = append(w.queue, a)
	w.spawn()
	if w.timer == nil {
		w.timer = time.AfterFunc(returnAfter, w.look)
		w.seen = w.begun
	}
}

// spawn starts a worker if there is work and a CPU for it. It runs under rt.mu.
func (w *workers) spawn() {
	if len(w.queue) == 0 || w.active >= max(w.rt.n.cfg.CPUs, 1) {
		return
	}
	w.active++
	w.names++
	slot := "worker-" + strconv.Itoa(w.names)
	w.rt.n.runner.slots.enter(slot)
	go w.work(slot)
}

func (w *workers) work(slot string) {
	rt, slots := w.rt, w.rt.n.runner.slots
	defer slots.remove(slot)
	err := slots.acquire(rt.n.ctx, slot)
	for {
		rt.mu.Lock()
		var a *attempt
		for len(w.queue) > 0 && a == nil && w.active <= max(rt.n.cfg.CPUs, 1) {
			a = w.queue[0]
			w.queue[0] = nil
			w.queue = w.queue[1:]
			if !a.queued {
				a = nil
			}
		}
		if a == nil {
			w.active--
			rt.mu.Unlock()
			return
		}
		a.queued, a.slot = false, slot
		w.begun++
		rt.mu.Unlock()
		if err != nil {
			a.ctx.cancel(ErrClosed)
		}
		a.run()
		if err == nil {
			err = slots.turn(rt.n.ctx, slot)
		}
	}
}

// waiting says that a worker's task waits, or no longer does.
func (w *workers) waiting(on bool) {
	w.rt.mu.Lock()
	defer w.rt.mu.Unlock()
	if on {
		w.active--
		w.spawn()
	} else {
		w.active++
	}
}

// drop runs a cancelled attempt out of turn, to its end. It runs under rt.mu.
func (w *workers) drop(a *attempt) {
	if a.queued {
		a.queued = false
		go a.run()
	}
}

// look gives the head back what stands behind slow tasks.
func (w *workers) look() {
	rt := w.rt
	rt.mu.Lock()
	var back []any
	if len(w.queue) == 0 || rt.n.ctx.Err() != nil {
		w.timer = nil
		rt.mu.Unlock()
		return
	}
	if w.begun == w.seen {
		for _, a := range w.queue {
			if a.queued {
				a.queued = false
				delete(rt.attempts, a.key())
				a.ctx.cancel(context.Canceled)
				if a.done != nil {
					close(a.done)
				}
				rt.running.leave()
				back = append(back, &core.Returned{ID: a.m.Spec.ID, Attempt: a.m.Attempt})
			}
		}
		w.queue = nil
	}
	w.seen = w.begun
	w.timer.Reset(returnAfter)
	rt.mu.Unlock()
	if len(back) > 0 {
		rt.send(back...)
	}
}
