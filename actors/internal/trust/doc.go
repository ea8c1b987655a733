// Package trust makes a cluster's token its root of trust: whoever has the token talks to the cluster by mutual TLS 1.3, and nobody
// else gets further than the handshake.
//
// From the token every process derives the same signing key, which is the cluster's certificate authority. With it the process issues
// itself a certificate for a key that it has just made up, and it believes certificates of that authority alone, for one fixed name. So
// there are no certificates to hand out, to keep or to renew, and the token itself never travels. All holders of a token are
// equal: each could make itself any certificate, as each may run anything on the cluster anyway.
//
// A client that verifies the other end first gives nothing to an impostor. A server has to show its certificate to whoever
// connects, so a stranger can try tokens against that signature in private. Two things stand against it: the derivation is slow
// (PBKDF2, some 30 ms for each try), and a token for an address that strangers reach must be long ([MinToken]), best of all made by
// [NewToken].
//
// A nil *[Trust] is that of a cluster without a token: plain connections, which are for one machine alone.
//
// # Connections
//
// [Trust.Server] and [Trust.Client] take over a connection; deadlines that the caller has set bound the handshake. What they return
// differs from a tls.Conn in that it writes several records with one call to the system, that CloseWrite waits as any write
// does, and that Close hardly waits: it says goodbye if that can be done within 10 ms.
//
// What a TCP connection does not promise, this one does not either: its end can be forged by who is in between, so the end of
// what matters must be said in so many words. And who closes it with something unread, be it the other end's goodbye, may take what it
// wrote last with it; read to the end first.
//
// Who speaks plainly where TLS is spoken, or the reverse, is answered by [Refusal] in plain text. It cannot begin TLS, HTTP/2 or the
// answer to a preface, so that the other end can say what is wrong.
package trust
