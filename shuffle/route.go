package shuffle

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"manta/shuffle/keys"
	"manta/shuffle/rows"
)

// router gives the rows of a batch (borrowed) to the partitions of a builder.
type router func(b *rows.Builder, batch arrow.RecordBatch, emit rows.Emit) error

// dealt is how many rows in a row a partition gets from RoundRobin: enough to pass without a scatter.
const dealt = 1024

// newRouter checks the route. Where a row goes depends on the row alone, for RoundRobin on its number: a second attempt that
// writes the same rows sends them the same way.
func newRouter(o WriterOptions, producer, partitions int) (router, error) {
	route := o.Route
	switch route.Kind {
	case ByColumn:
		return func(b *rows.Builder, batch arrow.RecordBatch, emit rows.Emit) error {
			return b.Scatter(batch, route.Column, emit)
		}, nil
	case ToAll, To:
		return func(b *rows.Builder, batch arrow.RecordBatch, emit rows.Emit) error { return b.Add(0, batch, emit) }, nil
	case ByKey:
		h, err := keys.NewHasher(o.Schema, route.Columns)
		if err != nil {
			return nil, err
		}
		return scatter(func(batch arrow.RecordBatch, out []uint32) ([]uint32, error) {
			return h.Partitions(batch, partitions, out)
		}), nil
	case ByRange:
		if route.Bounds != nil && int(route.Bounds.NumRows()) != partitions-1 {
			return nil, fmt.Errorf("%w: %d bounds for %d partitions", keys.ErrKey, route.Bounds.NumRows(), partitions)
		}
		ranges, err := keys.NewRanges(o.Schema, route.Keys, route.Bounds)
		if err != nil {
			return nil, err
		}
		return scatter(ranges.Partitions), nil
	case RoundRobin:
		return deal(int64(producer), int64(partitions)), nil
	}
	return nil, fmt.Errorf("%w: route of kind %d", ErrEdge, route.Kind)
}

// scatter routes by a function that appends each row's partition to out.
func scatter(partitions func(batch arrow.RecordBatch, out []uint32) ([]uint32, error)) router {
	var scratch []uint32
	return func(b *rows.Builder, batch arrow.RecordBatch, emit rows.Emit) (err error) {
		if scratch, err = partitions(batch, scratch[:0]); err != nil {
			return err
		}
		return b.ScatterTo(batch, scratch, emit)
	}
}

// deal gives each partition `dealt` rows in turn, beginning with another one for each producer.
func deal(producer, partitions int64) router {
	next := int64(0) // number of the next row
	return func(b *rows.Builder, batch arrow.RecordBatch, emit rows.Emit) error {
		for at := int64(0); at < batch.NumRows(); {
			to := min(batch.NumRows(), at+dealt-next%dealt)
			part := batch.NewSlice(at, to)
			err := b.Add(int((producer+next/dealt)%partitions), part, emit)
			part.Release()
			if err != nil {
				return err
			}
			next += to - at
			at = to
		}
		return nil
	}
}
