package actors

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"manta/actors/core"
)

var (
	// ErrActorDead: the actor has ended; the text says why.
	ErrActorDead = errors.New("actors: actor is dead")
	// ErrPendingCalls: the actor has as many pending calls as it was allowed.
	ErrPendingCalls = errors.New("actors: too many pending calls")
	// ErrObjectLost: the value is gone and cannot be made again; the text says why.
	ErrObjectLost = errors.New("actors: value is lost")
	// ErrUnschedulable: no node can ever run it; the text says why.
	ErrUnschedulable = errors.New("actors: cannot be scheduled")
	// ErrOutOfMemory: a node's store, or what a task's code said this of, has no room. A task that may be tried again because of it,
	// perhaps elsewhere, says so by RetryErrors.
	ErrOutOfMemory = errors.New("actors: out of memory")
	// ErrTaskTimeout: the task ran for longer than it was allowed.
	ErrTaskTimeout = errors.New("actors: task timed out")
	// ErrReleased: the reference was released.
	ErrReleased = errors.New("actors: reference was released")
	// ErrStreamClosed: nobody reads the stream any more.
	ErrStreamClosed = errors.New("actors: stream is closed")
)

func init() {
	for name, err := range map[string]error{
		core.FailActorDead: ErrActorDead, core.FailPending: ErrPendingCalls, core.FailObjectLost: ErrObjectLost,
		core.FailUnschedulable: ErrUnschedulable, "actors.task_timeout": ErrTaskTimeout, "actors.out_of_memory": ErrOutOfMemory, "actors.released": ErrReleased,
		"actors.stream_closed": ErrStreamClosed,
	} {
		RegisterError(name, err)
	}
}

// RunError is a task's or call's own error, or what kept it from having a result.
type RunError struct {
	Name  string // of the function or method, "" if it never ran
	Node  NodeID // where it ran, or was to run; "" if nowhere
	Stack string // where it panicked
	text  string
	kinds []error
}

func (e *RunError) Error() string {
	if e.Name == "" {
		return e.text
	}
	return e.Name + ": " + e.text
}

// Unwrap gives the errors behind it that are registered in this process.
func (e *RunError) Unwrap() []error { return e.kinds }

var errorTypes = struct {
	sync.RWMutex
	byName map[string]errorType
	byType map[reflect.Type]string
}{byName: make(map[string]errorType), byType: make(map[reflect.Type]string)}

type errorType struct {
	encode func(error) ([]byte, bool)
	decode func([]byte) (error, bool)
}

// RegisterErrorType lets errors.As find an E in errors that come from other processes, with its exported fields. Call it from
// an init function, in every process under the same name; a name that is taken panics.
func RegisterErrorType[E error](name string) {
	errorTypes.Lock()
	defer errorTypes.Unlock()
	if _, ok := errorTypes.byName[name]; ok || strings.ContainsAny(name, ",\x00") {
		panic("actors: error type name " + name + " is registered twice, or is none")
	}
	errorTypes.byName[name] = errorType{
		encode: func(err error) ([]byte, bool) {
			var e E
			if !errors.As(err, &e) {
				return nil, false
			}
			data, merr := encoding.Marshal(e)
			return data, merr == nil
		},
		decode: func(data []byte) (error, bool) {
			var e E
			return e2(decoding.Unmarshal(data, &e), &e)
		},
	}
}

func e2[E error](err error, e *E) (error, bool) { return *e, err == nil }

// toFailure makes an error ready to travel. An error of the runtime itself may be tried again.
func toFailure(err error, opt *core.Options) *core.Failure {
	if err == nil {
		return nil
	}
	w := encodeError(err)
	f := &core.Failure{Text: w.Text, Kinds: w.Kinds}
	errorTypes.RLock()
	for name, t := range errorTypes.byName {
		if data, ok := t.encode(err); ok {
			f.Kinds = append(f.Kinds, "type:"+name)
			f.Detail = data
			break
		}
	}
	errorTypes.RUnlock()
	var run *RunError
	if errors.As(err, &run) {
		f.Stack = run.Stack
	}
	if opt != nil && opt.RetryApp && !errors.Is(err, context.Canceled) {
		f.Retry = opt.RetryOn == ""
		for name := range strings.SplitSeq(opt.RetryOn, ",") {
			for _, k := range f.Kinds {
				f.Retry = f.Retry || k == name || k == "type:"+name
			}
		}
	}
	return f
}

// fromFailure gives the error.
func fromFailure(name string, f *core.Failure) error {
	if f == nil {
		return nil
	}
	e := &RunError{Name: name, Node: NodeID(f.At), Stack: f.Stack, text: f.Text}
	registeredErrors.RLock()
	for _, k := range f.Kinds {
		if kind, ok := registeredErrors.byName[k]; ok {
			e.kinds = append(e.kinds, kind)
		}
	}
	registeredErrors.RUnlock()
	for _, k := range f.Kinds {
		if name, ok := strings.CutPrefix(k, "type:"); ok {
			errorTypes.RLock()
			t, known := errorTypes.byName[name]
			errorTypes.RUnlock()
			if known {
				if inner, ok := t.decode(f.Detail); ok {
					e.kinds = append(e.kinds, inner)
				}
			}
		}
	}
	return e
}

// errorNames gives the names under which errors are registered, for Options.RetryOn.
func errorNames(errs []error) string {
	var names []string
	registeredErrors.RLock()
	defer registeredErrors.RUnlock()
	for _, err := range errs {
		found := false
		for name, kind := range registeredErrors.byName {
			if kind == err {
				names, found = append(names, name), true
			}
		}
		if !found {
			panic(fmt.Sprintf("actors: error %q is not registered", err))
		}
	}
	return strings.Join(names, ",")
}
