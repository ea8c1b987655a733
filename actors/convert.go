package actors

import (
	"fmt"
	"time"

	"manta/actors/core"
	"manta/actors/internal/wire"
)

// toItem makes a runtime message ready to travel. The message is borrowed and does not change.
func toItem(msg any) (*wire.Item, error) {
	switch m := msg.(type) {
	case *core.Submit:
		spec, err := specToWire(m.Spec, true)
		return &wire.Item{Submit: &wire.Submit{Spec: spec}}, err
	case *core.Put:
		v, err := valueToWire(&m.Value)
		return &wire.Item{Put: &wire.PutObject{
			Id: uint64(m.ID), Job: string(m.Job), Value: v, Pending: m.Pending, Failure: failureToWire(m.Failure), For: string(m.For),
		}}, err
	case *core.Call:
		spec, err := specToWire(m.Spec, true)
		return &wire.Item{Call: &wire.CallActor{Spec: spec, Incarnation: m.Incarnation}}, err
	case *core.Answer:
		v, err := valueToWire(&m.Value)
		return &wire.Item{Answer: &wire.AnswerCall{Id: uint64(m.ID), Value: v, Failure: failureToWire(m.Failure), Missed: m.Missed, AtHead: m.AtHead}}, err
	case *core.Fence:
		return &wire.Item{Fence: m.Number}, nil
	case *core.Fenced:
		return &wire.Item{Fenced: m.Number}, nil
	case *core.Where:
		return &wire.Item{Where: placeToWire(m)}, nil
	case *core.StopCalls:
		return &wire.Item{StopCalls: uint64(m.Parent)}, nil
	case *core.Hold:
		return &wire.Item{Hold: uint64(m.ID)}, nil
	case *core.Release:
		return &wire.Item{Release: uint64(m.ID)}, nil
	case *core.Want:
		return &wire.Item{Want: uint64(m.ID)}, nil
	case *core.Lost:
		return &wire.Item{Lost: &wire.LostObject{Id: uint64(m.ID), Node: string(m.Node)}}, nil
	case *core.Done:
		vs, err := valuesToWire(m.Results)
		return &wire.Item{Done: &wire.DoneAttempt{
			Id: uint64(m.ID), Attempt: m.Attempt, Results: vs, Failure: failureToWire(m.Failure), Nanos: m.Nanos,
		}}, err
	case *core.Blocked:
		return &wire.Item{Blocked: &wire.BlockedAttempt{Id: uint64(m.ID), Attempt: m.Attempt, On: m.On}}, nil
	case *core.Cancel:
		return &wire.Item{Cancel: &wire.CancelObject{Id: uint64(m.ID), Recursive: m.Recursive}}, nil
	case *core.Kill:
		return &wire.Item{Kill: &wire.KillActor{Actor: uint64(m.Actor), Restart: m.Restart}}, nil
	case *core.Emit:
		v, err := valueToWire(&m.Value)
		return &wire.Item{Emit: &wire.EmitItem{
			Stream: uint64(m.Stream), Attempt: m.Attempt, Index: m.Index, Value: v, End: m.End, Failure: failureToWire(m.Failure),
		}}, err
	case *core.Read:
		return &wire.Item{Read: &wire.ReadStream{Stream: uint64(m.Stream), Reader: m.Reader, Consumed: m.Consumed, Upto: m.Upto, Lost: string(m.Lost), Turn: uint64(m.Turn)}}, nil
	case *core.Returned:
		return &wire.Item{Returned: &wire.Attempt{Id: uint64(m.ID), Attempt: m.Attempt}}, nil
	case *core.Welcome:
		return &wire.Item{Welcome: m.Number}, nil
	case *core.Start:
		return startToWire(m)
	case *core.Stop:
		return &wire.Item{Stop: &wire.StopAttempt{Id: uint64(m.ID), Attempt: m.Attempt, Reason: m.Reason}}, nil
	case *core.StopActor:
		return &wire.Item{StopActor: &wire.StopActor{Actor: uint64(m.Actor), Reason: m.Reason}}, nil
	case *core.Ready:
		v, err := valueToWire(&m.Value)
		return &wire.Item{Ready: &wire.ReadyObject{Id: uint64(m.ID), Value: v, Failure: failureToWire(m.Failure)}}, err
	case *core.Free:
		return &wire.Item{Free: m.Key[:]}, nil
	case *core.Credit:
		return &wire.Item{Credit: &wire.StreamCredit{Stream: uint64(m.Stream), Attempt: m.Attempt, Consumed: m.Consumed, Closed: m.Closed}}, nil
	case *core.Items:
		vs, err := valuesToWire(m.Values)
		return &wire.Item{Items: &wire.StreamItems{
			Stream: uint64(m.Stream), Reader: m.Reader, Turn: uint64(m.Turn), Index: m.Index, Values: vs, End: m.End, Failure: failureToWire(m.Failure),
		}}, err
	}
	return nil, fmt.Errorf("actors: %T is no message of the runtime", msg)
}

// fromItem gives the message that toItem took; nil if it is of a kind that is not known.
func fromItem(i *wire.Item) any {
	switch {
	case i.Start != nil:
		m := i.Start
		spec := specFromWire(m.Spec)
		spec.Args = make([]core.Arg, len(m.Refs))
		for k, ref := range m.Refs {
			spec.Args[k].Ref = core.ID(ref)
		}
		var places []core.Where
		for _, p := range m.Places {
			places = append(places, placeFromWire(p))
		}
		return &core.Start{Places: places, Spec: spec, Attempt: m.Attempt, Args: valuesFromWire(m.Args), Actor: core.ID(m.Actor), Skip: m.Skip, Base: m.Base, Window: m.Window}
	case i.Done != nil:
		m := i.Done
		return &core.Done{ID: core.ID(m.Id), Attempt: m.Attempt, Results: valuesFromWire(m.Results), Failure: failureFromWire(m.Failure), Nanos: m.Nanos}
	case i.Ready != nil:
		return &core.Ready{ID: core.ID(i.Ready.Id), Value: valueFromWire(i.Ready.Value), Failure: failureFromWire(i.Ready.Failure)}
	case i.Submit != nil:
		return &core.Submit{Spec: specFromWire(i.Submit.Spec)}
	case i.Release != 0:
		return &core.Release{ID: core.ID(i.Release)}
	case i.Hold != 0:
		return &core.Hold{ID: core.ID(i.Hold)}
	case i.Put != nil:
		m := i.Put
		return &core.Put{
			ID: core.ID(m.Id), Job: core.JobID(m.Job), Value: valueFromWire(m.Value), Pending: m.Pending, Failure: failureFromWire(m.Failure),
			For: core.NodeID(m.For),
		}
	case i.Call != nil:
		return &core.Call{Spec: specFromWire(i.Call.Spec), Incarnation: i.Call.Incarnation}
	case i.Answer != nil:
		m := i.Answer
		return &core.Answer{ID: core.ID(m.Id), Value: valueFromWire(m.Value), Failure: failureFromWire(m.Failure), Missed: m.Missed, AtHead: m.AtHead}
	case i.Fence != 0:
		return &core.Fence{Number: i.Fence}
	case i.Fenced != 0:
		return &core.Fenced{Number: i.Fenced}
	case i.Where != nil:
		w := placeFromWire(i.Where)
		return &w
	case i.StopCalls != 0:
		return &core.StopCalls{Parent: core.ID(i.StopCalls)}
	case i.Want != 0:
		return &core.Want{ID: core.ID(i.Want)}
	case i.Lost != nil:
		return &core.Lost{ID: core.ID(i.Lost.Id), Node: core.NodeID(i.Lost.Node)}
	case i.Blocked != nil:
		return &core.Blocked{ID: core.ID(i.Blocked.Id), Attempt: i.Blocked.Attempt, On: i.Blocked.On}
	case i.Cancel != nil:
		return &core.Cancel{ID: core.ID(i.Cancel.Id), Recursive: i.Cancel.Recursive}
	case i.Kill != nil:
		return &core.Kill{Actor: core.ID(i.Kill.Actor), Restart: i.Kill.Restart}
	case i.Emit != nil:
		m := i.Emit
		return &core.Emit{Stream: core.ID(m.Stream), Attempt: m.Attempt, Index: m.Index, Value: valueFromWire(m.Value), End: m.End, Failure: failureFromWire(m.Failure)}
	case i.Read != nil:
		m := i.Read
		return &core.Read{Stream: core.ID(m.Stream), Reader: m.Reader, Consumed: m.Consumed, Upto: m.Upto, Lost: core.NodeID(m.Lost), Turn: core.ID(m.Turn)}
	case i.Returned != nil:
		return &core.Returned{ID: core.ID(i.Returned.Id), Attempt: i.Returned.Attempt}
	case i.Welcome != 0:
		return &core.Welcome{Number: i.Welcome}
	case i.Stop != nil:
		return &core.Stop{ID: core.ID(i.Stop.Id), Attempt: i.Stop.Attempt, Reason: i.Stop.Reason}
	case i.StopActor != nil:
		return &core.StopActor{Actor: core.ID(i.StopActor.Actor), Reason: i.StopActor.Reason}
	case len(i.Free) == 16:
		return &core.Free{Key: [16]byte(i.Free)}
	case i.Credit != nil:
		m := i.Credit
		return &core.Credit{Stream: core.ID(m.Stream), Attempt: m.Attempt, Consumed: m.Consumed, Closed: m.Closed}
	case i.Items != nil:
		m := i.Items
		return &core.Items{
			Stream: core.ID(m.Stream), Reader: m.Reader, Turn: core.ID(m.Turn), Index: m.Index, Values: valuesFromWire(m.Values),
			End: m.End, Failure: failureFromWire(m.Failure),
		}
	}
	return nil
}

func placeToWire(m *core.Where) *wire.ActorPlace {
	return &wire.ActorPlace{Actor: uint64(m.Actor), Node: string(m.Node), Incarnation: m.Incarnation}
}

func placeFromWire(w *wire.ActorPlace) core.Where {
	return core.Where{Actor: core.ID(w.Actor), Node: core.NodeID(w.Node), Incarnation: w.Incarnation}
}

func startToWire(m *core.Start) (*wire.Item, error) {
	spec, _ := specToWire(m.Spec, false)
	vs, err := valuesToWire(m.Args)
	refs := make([]uint64, len(m.Args))
	for i := range m.Spec.Args {
		refs[i] = uint64(m.Spec.Args[i].Ref)
	}
	var places []*wire.ActorPlace
	for i := range m.Places {
		places = append(places, placeToWire(&m.Places[i]))
	}
	return &wire.Item{Start: &wire.StartAttempt{
		Places: places,
		Spec:   spec, Attempt: m.Attempt, Args: vs, Actor: uint64(m.Actor), Skip: m.Skip, Base: m.Base, Window: m.Window, Refs: refs,
	}}, err
}

func valueToWire(v *core.Value) (*wire.ObjectValue, error) {
	w := &wire.ObjectValue{Data: v.Data, Node: string(v.Node), Size: v.Size}
	if v.Node != "" {
		w.Key = v.Key[:]
	}
	for _, id := range v.Contains {
		w.Contains = append(w.Contains, uint64(id))
	}
	if v.Live != nil {
		data, err := v.Live.Encode()
		if err != nil {
			return nil, err
		}
		w.Data = data
	}
	return w, nil
}

func valueFromWire(w *wire.ObjectValue) (v core.Value) {
	if w == nil {
		return v
	}
	v.Data, v.Node, v.Size = w.Data, core.NodeID(w.Node), w.Size
	if len(w.Key) == 16 {
		v.Key = [16]byte(w.Key)
	}
	for _, id := range w.Contains {
		v.Contains = append(v.Contains, core.ID(id))
	}
	return v
}

func valuesToWire(vs []core.Value) ([]*wire.ObjectValue, error) {
	out := make([]*wire.ObjectValue, len(vs))
	for i := range vs {
		w, err := valueToWire(&vs[i])
		if err != nil {
			return nil, err
		}
		out[i] = w
	}
	return out, nil
}

func valuesFromWire(ws []*wire.ObjectValue) []core.Value {
	out := make([]core.Value, len(ws))
	for i, w := range ws {
		out[i] = valueFromWire(w)
	}
	return out
}

func failureToWire(f *core.Failure) *wire.TaskFailure {
	if f == nil {
		return nil
	}
	return &wire.TaskFailure{
		Failure: &wire.Failure{Text: cleanText(f.Text), Kinds: f.Kinds}, Detail: f.Detail, Stack: cleanText(f.Stack),
		System: f.System, Retry: f.Retry, Lost: uint64(f.Lost), LostAt: string(f.LostAt), At: string(f.At),
	}
}

func failureFromWire(w *wire.TaskFailure) *core.Failure {
	if w == nil {
		return nil
	}
	return &core.Failure{
		Text: w.GetFailure().GetText(), Kinds: w.GetFailure().GetKinds(), Detail: w.Detail, Stack: w.Stack,
		System: w.System, Retry: w.Retry, Lost: core.ID(w.Lost), LostAt: core.NodeID(w.LostAt), At: core.NodeID(w.At),
	}
}

func specToWire(s *core.Spec, args bool) (*wire.TaskSpec, error) {
	w := &wire.TaskSpec{
		Id: uint64(s.ID), Job: string(s.Job), Kind: uint32(s.Kind), Stream: s.Stream, Results: int32(s.Results),
		Func: s.Func, Parent: uint64(s.Parent), Actor: uint64(s.Actor),
	}
	if s.Opt != &taskDefaults && s.Opt != &callDefaults {
		w.Options = optionsToWire(s.Opt)
	}
	if !args {
		return w, nil
	}
	w.Args = make([]*wire.TaskArg, len(s.Args))
	for i := range s.Args {
		a := &wire.TaskArg{Ref: uint64(s.Args[i].Ref)}
		if s.Args[i].Val != nil {
			v, err := valueToWire(s.Args[i].Val)
			if err != nil {
				return nil, err
			}
			a.Value = v
		}
		w.Args[i] = a
	}
	return w, nil
}

func specFromWire(w *wire.TaskSpec) *core.Spec {
	s := &core.Spec{
		ID: core.ID(w.GetId()), Job: core.JobID(w.GetJob()), Kind: core.Kind(w.GetKind()), Stream: w.GetStream(), Results: int(w.GetResults()),
		Func: w.GetFunc(), Parent: core.ID(w.GetParent()), Actor: core.ID(w.GetActor()),
	}
	switch {
	case w.GetOptions() != nil:
		s.Opt = optionsFromWire(w.Options)
	case s.Kind == core.KindCall:
		s.Opt = &callDefaults
	default:
		s.Opt = &taskDefaults
	}
	for _, a := range w.GetArgs() {
		arg := core.Arg{Ref: core.ID(a.Ref)}
		if a.Value != nil {
			v := valueFromWire(a.Value)
			arg.Val = &v
		}
		s.Args = append(s.Args, arg)
	}
	return s
}

func optionsToWire(o *core.Options) *wire.Options {
	return &wire.Options{
		Cpu: o.CPU, Memory: o.Memory, Custom: o.Custom, Labels: o.Labels, Node: string(o.Node), Soft: o.Soft, Spread: o.Spread,
		Group: uint64(o.Group), Bundle: o.Bundle, Priority: o.Priority, Name: o.Name, Retries: int64(o.Retries),
		RetryApp: o.RetryApp, RetryOn: o.RetryOn, Timeout: o.Timeout, Window: o.Window, Readers: o.Readers, Restarts: int64(o.Restarts),
		GetOrMake: o.GetOrMake, Detached: o.Detached, MaxPending: int64(o.MaxPending), Parallel: int64(o.Parallel), AnyOrder: o.AnyOrder,
		Lane: o.Lane, Lanes: o.Lanes, Bundles: o.Bundles, Layout: uint32(o.Layout), Gang: uint64(o.Gang), GangSize: o.GangSize,
	}
}

func optionsFromWire(w *wire.Options) *core.Options {
	return &core.Options{
		Demand: core.Demand{
			CPU: w.Cpu, Memory: w.Memory, Custom: w.Custom, Labels: w.Labels, Node: core.NodeID(w.Node), Soft: w.Soft, Spread: w.Spread,
			Group: core.ID(w.Group), Bundle: w.Bundle, Priority: w.Priority,
		},
		Name: w.Name, Retries: int(w.Retries), RetryApp: w.RetryApp, RetryOn: w.RetryOn, Timeout: w.Timeout, Window: w.Window,
		Readers: w.Readers, Restarts: int(w.Restarts), GetOrMake: w.GetOrMake, Detached: w.Detached, MaxPending: int(w.MaxPending),
		Parallel: int(w.Parallel), AnyOrder: w.AnyOrder, Lane: w.Lane, Lanes: w.Lanes, Bundles: w.Bundles, Layout: core.Layout(w.Layout), Gang: core.ID(w.Gang), GangSize: w.GangSize,
	}
}

// The options of a task and of a call that was given none. They travel as nothing.
var (
	taskDefaults = core.Options{Demand: core.Demand{CPU: 1000, Bundle: -1}, Retries: 3, Window: defaultWindow, Parallel: 1}
	callDefaults = core.Options{Demand: core.Demand{Bundle: -1}, Window: defaultWindow}
)

const defaultWindow = 64

// resendAfter is the silence after which a link sends again what was not acknowledged.
const resendAfter = 300 * time.Millisecond
