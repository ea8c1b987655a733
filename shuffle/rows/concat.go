package rows

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// concatenate joins arrays (borrowed, at least one) of one type into a new one. Arrow's own function knows no unions and
// stumbles over empty dictionary arrays, so types that contain one of these are joined here, child by child.
func concatenate(mem memory.Allocator, arrs []arrow.Array) (arrow.Array, error) {
	dt := arrs[0].DataType()
	var some []arrow.Array
	for _, a := range arrs {
		if a.Len() > 0 {
			some = append(some, a)
		}
	}
	if len(some) == 0 {
		return array.MakeArrayOfNull(mem, dt, 0), nil
	}
	if !special(dt, true) {
		return array.Concatenate(some, mem)
	}
	switch dt := dt.(type) {
	case *arrow.SparseUnionType:
		return joinSparse(mem, dt, some)
	case *arrow.DenseUnionType:
		return joinDense(mem, dt, some)
	case *arrow.StructType:
		return joinStruct(mem, dt, some)
	case *arrow.ListType, *arrow.MapType:
		return joinLists[int32](mem, dt, some, 4)
	case *arrow.LargeListType:
		return joinLists[int64](mem, dt, some, 8)
	}
	return array.Concatenate(some, mem) // says that it can not
}

// special says whether a type contains a union, or a dictionary anywhere but at the top.
func special(dt arrow.DataType, top bool) bool {
	switch dt := dt.(type) {
	case arrow.UnionType:
		return true
	case *arrow.DictionaryType:
		return !top
	case arrow.NestedType:
		for _, f := range dt.Fields() {
			if special(f.Type, false) {
				return true
			}
		}
	}
	return false
}

// rowsIn is the number of rows of all arrays.
func rowsIn(arrs []arrow.Array) (n int) {
	for _, a := range arrs {
		n += a.Len()
	}
	return n
}

// joinChildren concatenates what pick makes (retained) of each array.
func joinChildren(mem memory.Allocator, arrs []arrow.Array, pick func(arrow.Array) arrow.Array) (arrow.Array, error) {
	parts := make([]arrow.Array, len(arrs))
	for i, a := range arrs {
		parts[i] = pick(a)
	}
	defer func() {
		for _, p := range parts {
			p.Release()
		}
	}()
	return concatenate(mem, parts)
}

// finishNested makes an array of buffers and children, which it takes.
func finishNested(dt arrow.DataType, n, nulls int, buffers []*memory.Buffer, children []arrow.Array) arrow.Array {
	datas := make([]arrow.ArrayData, len(children))
	for i, c := range children {
		datas[i] = c.Data()
	}
	data := array.NewData(dt, n, buffers, datas, nulls, 0)
	defer data.Release()
	for _, c := range children {
		c.Release()
	}
	for _, b := range buffers {
		if b != nil {
			b.Release()
		}
	}
	return array.MakeFromData(data)
}

func releaseAll(arrs []arrow.Array) {
	for _, a := range arrs {
		a.Release()
	}
}

// joinValidity joins the null bitmaps.
func joinValidity(mem memory.Allocator, arrs []arrow.Array) (*memory.Buffer, int) {
	var v validity
	n := 0
	for _, a := range arrs {
		v.append(mem, n, a, nil, a.Len())
		n += a.Len()
	}
	return v.take(mem, n)
}

func joinStruct(mem memory.Allocator, dt *arrow.StructType, arrs []arrow.Array) (arrow.Array, error) {
	var children []arrow.Array
	for f := range dt.NumFields() {
		// Field gives the child as the struct's own slice of it.
		c, err := joinChildren(mem, arrs, func(a arrow.Array) arrow.Array {
			c := a.(*array.Struct).Field(f)
			c.Retain()
			return c
		})
		if err != nil {
			releaseAll(children)
			return nil, err
		}
		children = append(children, c)
	}
	valid, nulls := joinValidity(mem, arrs)
	return finishNested(dt, rowsIn(arrs), nulls, []*memory.Buffer{valid}, children), nil
}

func joinLists[O int32 | int64](mem memory.Allocator, dt arrow.DataType, arrs []arrow.Array, width int) (arrow.Array, error) {
	var offsets buf
	clear(offsets.grow(mem, width))
	var end O
	for _, a := range arrs {
		d := a.Data()
		src := as[O](d.Buffers()[1].Bytes())[d.Offset() : d.Offset()+a.Len()+1]
		dst := as[O](offsets.grow(mem, a.Len()*width))
		for i := range dst {
			dst[i] = end + src[i+1] - src[0]
		}
		end = dst[len(dst)-1]
	}
	items, err := joinChildren(mem, arrs, func(a arrow.Array) arrow.Array {
		d := a.Data()
		src := as[O](d.Buffers()[1].Bytes())[d.Offset() : d.Offset()+a.Len()+1]
		whole := array.MakeFromData(d.Children()[0])
		defer whole.Release()
		return array.NewSlice(whole, int64(src[0]), int64(src[a.Len()]))
	})
	if err != nil {
		offsets.free(mem)
		return nil, err
	}
	valid, nulls := joinValidity(mem, arrs)
	return finishNested(dt, rowsIn(arrs), nulls, []*memory.Buffer{valid, offsets.take(mem)}, []arrow.Array{items}), nil
}

// joinCodes joins the type codes of unions.
func joinCodes(mem memory.Allocator, arrs []arrow.Array) *memory.Buffer {
	var codes buf
	for _, a := range arrs {
		off := a.Data().Offset()
		copy(codes.grow(mem, a.Len()), a.Data().Buffers()[1].Bytes()[off:off+a.Len()])
	}
	return codes.take(mem)
}

func joinSparse(mem memory.Allocator, dt *arrow.SparseUnionType, arrs []arrow.Array) (arrow.Array, error) {
	var children []arrow.Array
	for f := range dt.NumFields() {
		c, err := joinChildren(mem, arrs, func(a arrow.Array) arrow.Array {
			off := int64(a.Data().Offset())
			whole := array.MakeFromData(a.Data().Children()[f])
			defer whole.Release()
			return array.NewSlice(whole, off, off+int64(a.Len()))
		})
		if err != nil {
			releaseAll(children)
			return nil, err
		}
		children = append(children, c)
	}
	return finishNested(dt, rowsIn(arrs), 0, []*memory.Buffer{nil, joinCodes(mem, arrs)}, children), nil
}

// joinDense keeps the children whole up to the last value in use, and moves the offsets.
func joinDense(mem memory.Allocator, dt *arrow.DenseUnionType, arrs []arrow.Array) (arrow.Array, error) {
	n := dt.NumFields()
	first, last := make([][]int32, len(arrs)), make([][]int32, len(arrs)) // by array and child
	var offsets buf
	base := make([]int32, n)
	for i, a := range arrs {
		u := a.(*array.DenseUnion)
		first[i], last[i] = make([]int32, n), make([]int32, n)
		for f := range n {
			first[i][f] = -1
		}
		for r := range u.Len() {
			f, v := u.ChildID(r), u.ValueOffset(r)
			if first[i][f] < 0 || v < first[i][f] {
				first[i][f] = v
			}
			last[i][f] = max(last[i][f], v+1)
		}
		dst := as[int32](offsets.grow(mem, u.Len()*4))
		for r := range dst {
			f := u.ChildID(r)
			dst[r] = base[f] + u.ValueOffset(r) - first[i][f]
		}
		for f := range n {
			base[f] += last[i][f] - max(first[i][f], 0)
		}
	}
	var children []arrow.Array
	for f := range n {
		at := -1
		c, err := joinChildren(mem, arrs, func(a arrow.Array) arrow.Array {
			at++
			whole := array.MakeFromData(a.Data().Children()[f])
			defer whole.Release()
			return array.NewSlice(whole, int64(max(first[at][f], 0)), int64(last[at][f]))
		})
		if err != nil {
			offsets.free(mem)
			releaseAll(children)
			return nil, err
		}
		children = append(children, c)
	}
	return finishNested(dt, rowsIn(arrs), 0, []*memory.Buffer{nil, joinCodes(mem, arrs), offsets.take(mem)}, children), nil
}
