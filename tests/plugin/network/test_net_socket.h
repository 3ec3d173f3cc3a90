/* Bytes between two processes of a host over a UNIX socket, without waiting: what the test plugins are made of. C and
 * C++. */
#ifndef TEST_NET_SOCKET_H_
#define TEST_NET_SOCKET_H_

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What the receiver's listen() tells the sender's connect(): the socket's name, in Linux's name space without files.
 */
typedef struct {
  uint64_t name;
} SocketHandle;

/** Each gives a descriptor; -1: errno says why, EAGAIN: not yet. */
int socketListen(SocketHandle* handle);
int socketConnect(const SocketHandle* handle);
/** Anybody on the host may try names: only processes of the same user are let in. */
int socketAccept(int listener);

/** Moves what the socket takes or has, and shortens the parts by it; how many bytes. Why nothing will move any more
 * goes to `error`, a lasting text. */
size_t socketMove(int fd, int out, struct iovec* parts, size_t n, const char** error);

#ifdef __cplusplus
}
#endif

#endif
