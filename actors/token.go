package actors

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	"manta/actors/internal/trust"
)

// tokenName is the file in a head's data directory with the token that it has made.
const tokenName = "token"

// startTrust sees to the node's token.
func (n *Node) startTrust() (err error) {
	host, _, _ := net.SplitHostPort(n.cfg.Listen)
	if n.cfg.Token == "" && n.cfg.Head == "" && !isLoopback(host) {
		n.tokenFile = filepath.Join(n.cfg.DataDir, tokenName)
		if n.cfg.Token, err = tokenOf(n.tokenFile); err != nil {
			return fmt.Errorf("actors: token: %w", err)
		}
	}
	if n.trust, err = trust.Of(n.cfg.Token); err != nil {
		return fmt.Errorf("actors: %w", err)
	}
	return nil
}

// TokenFile is where the head keeps a token of its own making, which other machines' nodes and clients need; "" when it was
// given its token, or has none.
func (n *Node) TokenFile() string { return n.tokenFile }

// tokenOf reads the token in a file, or makes both. The data directory is this process's alone.
func tokenOf(file string) (string, error) {
	text, err := os.ReadFile(file)
	switch {
	case err == nil:
		token := strings.TrimSpace(string(text))
		if len(token) < trust.MinToken {
			return "", fmt.Errorf("what is in %s is none; remove the file to have another one made", file)
		}
		return token, nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	token := trust.NewToken()
	part := file + ".part" // a crash leaves no half of a token
	if err := os.WriteFile(part, []byte(token+"\n"), 0o600); err != nil {
		return "", err
	}
	return token, os.Rename(part, file)
}
