package shuffle

// fifo is a queue in a slice.
type fifo[T any] struct {
	items []T
	head  int
}

func (f *fifo[T]) len() int { return len(f.items) - f.head }

func (f *fifo[T]) push(v T) {
	if f.head > 32 && f.head*2 > len(f.items) {
		n := copy(f.items, f.items[f.head:])
		clear(f.items[n:])
		f.items, f.head = f.items[:n], 0
	}
	f.items = append(f.items, v)
}

func (f *fifo[T]) front() *T { return &f.items[f.head] }

func (f *fifo[T]) pop() T {
	var zero T
	v := f.items[f.head]
	f.items[f.head] = zero
	f.head++
	if f.head == len(f.items) {
		f.items, f.head = f.items[:0], 0
	}
	return v
}

// replaceFront puts vs in the place of the first item.
func (f *fifo[T]) replaceFront(vs []T) {
	rest := f.items[f.head+1:]
	f.items, f.head = append(append(make([]T, 0, len(vs)+len(rest)), vs...), rest...), 0
}

func (f *fifo[T]) takeAll() []T {
	all := f.items[f.head:]
	f.items, f.head = nil, 0
	return all
}
