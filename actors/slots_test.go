package actors

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A task that gave up waiting for a slot must not be given one later.
func TestAcquireGivesUp(t *testing.T) {
	s := newSlots(1)
	require.NoError(t, s.acquire(context.Background(), "hog"))
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(why)
	require.ErrorIs(t, s.acquire(ctx, "quitter"), why)
	s.yield("hog")
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	require.NoError(t, s.acquire(ctx, "next"), "the quitter has the slot")
	running, waiting := s.counts()
	require.Equal(t, 1, running)
	require.Equal(t, 2, waiting)
	for _, id := range []string{"hog", "quitter", "next"} {
		s.remove(id)
	}
	running, waiting = s.counts()
	require.Zero(t, running+waiting)
	require.Empty(t, s.ready)
}
