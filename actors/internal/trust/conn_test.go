package trust

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Whatever the sizes of writes and reads, the bytes arrive, in both directions at once, and end with CloseWrite.
func TestConnCarries(t *testing.T) {
	client, server := pair(t)
	bits := rand.NewChaCha8([32]byte{1})
	random := rand.New(bits)
	sizes := []int{0, 1, 40, recordBytes - 1, recordBytes, recordBytes + 1, gatherBytes - 50, gatherBytes, 3*gatherBytes + 7, 1 << 20}
	message := func() (parts net.Buffers, all []byte) {
		for range 60 {
			part := make([]byte, sizes[random.IntN(len(sizes))])
			_, _ = bits.Read(part)
			parts, all = append(parts, part), append(all, part...)
		}
		return parts, all
	}
	there, wantThere := message()
	back, wantBack := message()
	send := func(c *Conn, parts net.Buffers) {
		if _, err := parts.WriteTo(c); err != nil {
			t.Error(err)
		}
		if err := c.CloseWrite(); err != nil {
			t.Error(err)
		}
		if _, err := c.Write([]byte("late")); err == nil {
			t.Error("a write after CloseWrite")
		}
	}
	go send(client, there)
	go send(server, back)
	arrived := make(chan []byte)
	go func() {
		all, err := io.ReadAll(server)
		if err != nil {
			t.Error(err)
		}
		arrived <- all
	}()
	all, err := io.ReadAll(client)
	require.NoError(t, err)
	require.True(t, bytes.Equal(wantBack, all))
	require.True(t, bytes.Equal(wantThere, <-arrived))
	require.NoError(t, client.Close())
	require.NoError(t, server.Close())
}

// fill writes until the other end, which does not read, takes no more.
func fill(t *testing.T, c *Conn) {
	t.Helper()
	require.NoError(t, c.SetWriteDeadline(time.Now().Add(300*time.Millisecond)))
	_, err := c.Write(make([]byte, 64<<20))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
}

// Close waits for nobody: neither for a write that is stuck, nor for room to say goodbye, nor for a read.
func TestConnCloses(t *testing.T) {
	t.Run("stuck write", func(t *testing.T) {
		client, _ := pair(t)
		ended := make(chan error)
		go func() {
			_, err := client.Write(make([]byte, 64<<20))
			ended <- err
		}()
		for client.writing.TryLock() { // until the write has begun
			client.writing.Unlock()
			time.Sleep(time.Millisecond)
		}
		require.NoError(t, client.Close())
		require.ErrorIs(t, <-ended, net.ErrClosed)
	})
	t.Run("no room", func(t *testing.T) {
		client, _ := pair(t)
		fill(t, client)
		require.NoError(t, client.Close())
	})
	t.Run("waiting read", func(t *testing.T) {
		client, server := pair(t)
		ended := make(chan error)
		go func() {
			_, err := client.Read(make([]byte, 1))
			ended <- err
		}()
		time.Sleep(50 * time.Millisecond)
		require.NoError(t, client.Close())
		require.ErrorIs(t, <-ended, net.ErrClosed)
		_, err := server.Read(make([]byte, 1))
		require.Equal(t, io.EOF, err)
	})
}

// The user's deadlines hold, and no others.
func TestConnDeadlines(t *testing.T) {
	client, server := pair(t)
	require.NoError(t, client.SetReadDeadline(time.Now().Add(time.Millisecond)))
	_, err := client.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, client.SetReadDeadline(time.Now().Add(patience)))
	_, err = server.Write([]byte("x"))
	require.NoError(t, err)
	_, err = client.Read(make([]byte, 1))
	require.NoError(t, err, "a read may be late and tried again")

	fill(t, client)
	require.ErrorIs(t, client.CloseWrite(), os.ErrDeadlineExceeded, "with the deadline of fill")
}

// CloseWrite, like any write, waits for a slow reader as long as that takes: here a little, where TLS itself would give up after 5 s.
func TestCloseWriteWaits(t *testing.T) {
	client, server := pair(t)
	require.NoError(t, client.SetDeadline(time.Time{}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	sent := make(chan error)
	go func() {
		_, err := client.Write(make([]byte, 16<<20))
		if err == nil {
			err = client.CloseWrite()
		}
		cancel()
		sent <- err
	}()
	time.Sleep(100 * time.Millisecond)
	require.NoError(t, ctx.Err(), "it waits")
	n, err := io.Copy(io.Discard, server)
	require.NoError(t, err)
	require.EqualValues(t, 16<<20, n)
	require.NoError(t, <-sent)
	_, err = server.Write([]byte("still open"))
	require.NoError(t, err)
	answer := make([]byte, 10)
	_, err = io.ReadFull(client, answer)
	require.NoError(t, err)
	require.Equal(t, "still open", string(answer))
}
