package shuffle

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"manta/actors"
	"manta/shuffle/shufflepb"
)

// serveFetch sends blocks that lie on this node.
func (s *Service) serveFetch(w *wire, _ actors.NodeID) {
	for {
		f, err := w.recv()
		if err != nil {
			return // the other end has no more to ask, or is gone
		}
		var req shufflepb.Fetch
		text, err := w.text(smallBytes)
		if err == nil {
			err = proto.Unmarshal(text, &req)
		}
		if err == nil && f.kind != frameFetch && f.kind != frameRelease {
			err = fmt.Errorf("%w: kind %d", errFrame, f.kind)
		}
		if err != nil {
			w.refuse(err)
			return
		}
		s.releaseHere(req.GetRelease(), fate(f.a))
		if f.kind == frameRelease {
			continue
		}
		block, err := s.openBlock(&req)
		if err != nil {
			err = s.because(actors.JobID(req.GetJob()), err)
			if w.send(outgoing{f: frame{kind: frameFail}, text: encodeFailure(err)}) != nil {
				return
			}
			continue
		}
		err = sendParts(w, block, func(err error) error { return s.because(actors.JobID(req.GetJob()), err) })
		block.close()
		if err != nil {
			return
		}
	}
}

// sendParts sends a block. A failure to read it goes to the peer as a frame, in the words of because.
func sendParts(w *wire, b localBlock, because func(error) error) error {
	total := b.size()
	for from := int64(0); ; {
		to := min(total, from+partBytes)
		data, err := b.part(from, to)
		if err != nil {
			return w.send(outgoing{f: frame{kind: frameFail}, text: encodeFailure(because(err))})
		}
		part := frame{kind: framePart, a: uint64(total), b: uint64(from)}
		if b.unsummed() {
			part.sum = data.checksum()
		}
		err = w.send(outgoing{f: part, block: data})
		data.release()
		if err != nil {
			return err
		}
		if to == total {
			return nil
		}
		from = to
	}
}
