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
	switch info, err := os.Stat(file); {
	case errors.Is(err, fs.ErrNotExist):
		token := trust.NewToken()
		return token, writeSecret(file, token+"\n")
	case err != nil:
		return "", err
	case info.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("others may read %s: chmod 600 it, or remove it to have another one made", file)
	}
	text, err := os.ReadFile(file)
	token := strings.TrimSpace(string(text))
	if err == nil && len(token) < trust.MinToken {
		err = fmt.Errorf("what is in %s is none; remove the file to have another one made", file)
	}
	return token, err
}

// writeSecret makes a file for its user alone, whole or not at all.
func writeSecret(file, text string) error {
	part := file + ".part"
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(part, file)
}
