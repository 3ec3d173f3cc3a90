#include "base/socket/errors.h"

#include <cerrno>

namespace tutti {

bool meansPeerGone(int error) {
  return error == ECONNRESET || error == EPIPE || error == ENOTCONN;
}

bool isLocalTrouble(int error) {
  switch (error) {
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS:
    case EACCES:
    case EBADF:
    case EINVAL:
    case EFAULT:
    case EAFNOSUPPORT:
    case EADDRNOTAVAIL:
      return true;
    default:
      return false;
  }
}

bool mayComeUpYet(int error) {
  switch (error) {
    case ECONNREFUSED:
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ECONNRESET:
    case ECONNABORTED:
    case EAGAIN:  // the system has no room for another connection or route just now
      return true;
    default:
      return false;
  }
}

const char* socketRemedy(int error) {
  switch (error) {
    case ECONNREFUSED:
      return ". Nobody listens there: did that process end, or does a firewall refuse?";
    case ETIMEDOUT:
      return ". The host does not answer: is it down, or does a firewall drop packets?";
    case EHOSTUNREACH:
    case ENETUNREACH:
      return ". There is no route: choose another interface with NCCL_SOCKET_IFNAME";
    case EMFILE:
    case ENFILE:
      return ". Too many open files: raise ulimit -n";
    case EADDRNOTAVAIL:
      return ". No free port, or an address that is not this host's";
    default:
      return "";
  }
}

}  // namespace tutti
