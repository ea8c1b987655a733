package trust

import (
	"crypto/ed25519"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

const (
	// MinToken is the least length in bytes of a token for an address that other machines reach.
	MinToken = 32

	// Changing either makes clusters of before and after refuse each other.
	salt       = "manta cluster authority"
	iterations = 200_000

	authority = "manta cluster" // the authority's name
	name      = "manta"         // of every node and client
)

// NewToken makes a token of 256 random bits.
func NewToken() string {
	var bits [32]byte
	_, _ = rand.Read(bits[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(bits[:])
}

// Trust is what a process needs to talk to the holders of a token. It is immutable.
type Trust struct {
	grpc   *tls.Config // both ends of gRPC, and the accepting end of everything
	stream *tls.Config // the connecting end of byte streams
}

// latest saves deriving the same thing for every node and client of a process.
var latest struct {
	sync.Mutex
	token string
	trust *Trust
}

// Of derives a token's trust, which takes some 30 ms the first time. "" gives nil.
func Of(token string) (*Trust, error) {
	if token == "" {
		return nil, nil
	}
	latest.Lock()
	defer latest.Unlock()
	if latest.trust != nil && latest.token == token {
		return latest.trust, nil
	}
	t, err := derive(token)
	if err != nil {
		return nil, fmt.Errorf("token: %w", err)
	}
	latest.token, latest.trust = token, t
	return t, nil
}

func derive(token string) (*Trust, error) {
	seed, err := pbkdf2.Key(sha256.New, token, []byte(salt), iterations, ed25519.SeedSize)
	if err != nil {
		return nil, err
	}
	caKey := ed25519.NewKeyFromSeed(seed)
	ca, err := issue(&x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: authority},
		IsCA:         true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
	}, nil, caKey.Public(), caKey)
	if err != nil {
		return nil, err
	}
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	own, err := issue(&x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		DNSNames:     []string{name},
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, ca, public, caKey)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca)
	config := &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{{Certificate: [][]byte{own.Raw}, PrivateKey: key, Leaf: own}},
		RootCAs:      pool, ServerName: name,
		ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
		NextProtos:             []string{"h2"},
		SessionTicketsDisabled: true,
		// Small records at first are for browsers, which show the beginning of what they have not read to its end.
		DynamicRecordSizingDisabled: true,
	}
	stream := config.Clone()
	stream.NextProtos = nil
	return &Trust{grpc: config, stream: stream}, nil
}

// issue signs a certificate; a nil parent makes it sign itself. It is valid at all times: what ends it is another token, and the
// clocks of machines differ.
func issue(template, parent *x509.Certificate, public any, key ed25519.PrivateKey) (*x509.Certificate, error) {
	template.NotBefore = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	template.NotAfter = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	if parent == nil {
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// Credentials are for gRPC, at either end.
func (t *Trust) Credentials() credentials.TransportCredentials {
	if t == nil {
		return insecure.NewCredentials()
	}
	return credentials.NewTLS(t.grpc)
}

var (
	// ErrOther: the other end has another token.
	ErrOther = errors.New("the token is not the cluster's")
	// ErrWanted: the other end has a token, and this one none.
	ErrWanted = errors.New("the cluster wants a token")
	// ErrNone: this end has a token, and the other one none.
	ErrNone = errors.New("the cluster has no token")
	// ErrForeign: the other end is no cluster.
	ErrForeign = errors.New("something else than Manta answers")
)

// refused is how every Refusal begins: as long as the header of a TLS record.
const refused = "manta"

// Refusal answers who did not begin as this end does.
func (t *Trust) Refusal() []byte {
	why := ErrNone
	if t != nil {
		why = ErrWanted
	}
	return []byte(refused + ": " + why.Error() + "\n")
}

// IsRefusal says whether the first bytes of an answer are those of a Refusal.
func IsRefusal(b []byte) bool {
	n := min(len(b), len(refused))
	return string(b[:n]) == refused[:n]
}

// Begins says whether a connection that begins with that byte can be one of t's.
func (t *Trust) Begins(first byte) bool {
	const handshake = 22 // the type of TLS's first record
	return (first == handshake) == (t != nil)
}

// Server makes the accepting end of a connection, of which begun was read already, secret. t is not nil.
func (t *Trust) Server(conn net.Conn, begun []byte) (*Conn, error) {
	c := newConn(conn, begun)
	c.tls = tls.Server(&c.records, t.grpc)
	return c, c.tls.Handshake()
}

// Client makes the connecting end of a byte stream secret. t is not nil. Any of the errors above says why the other end is not
// of the cluster.
func (t *Trust) Client(conn net.Conn) (*Conn, error) {
	c := newConn(conn, nil)
	c.tls = tls.Client(&c.records, t.stream)
	return c, classify(c.tls.Handshake())
}

func classify(err error) error {
	if plain, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		if IsRefusal(plain.RecordHeader[:]) {
			return ErrNone
		}
		return ErrForeign
	}
	if cert, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		if all := cert.UnverifiedCertificates; len(all) > 0 && all[0].Issuer.CommonName == authority {
			return ErrOther
		}
		return ErrForeign
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "remote error" {
		return ErrForeign // a holder of any token shows its certificate before it finds fault
	}
	return err
}
