// Socket addresses: parse, print, compare, send over a wire.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/status.h"

namespace tutti {

/// An IPv4 or IPv6 address with its port. Trivially copyable, 28 bytes, may travel to processes as it is (the scope of
/// a link-local IPv6 address means something on its own host only).
class Address {
 public:
  Address() = default;

  /// `ipv4:port`, `[ipv6]:port`, `[ipv6%interface]:port` or `host:port` (resolved; `family` AF_UNSPEC, AF_INET or
  /// AF_INET6 narrows the answer). Errors: ncclInvalidArgument quoting the text.
  static Result<Address> parse(std::string_view text, int family = AF_UNSPEC);
  /// Unset where the family is neither AF_INET nor AF_INET6.
  static Address from(const sockaddr* address);
  static Address loopback(int family, std::uint16_t port = 0);
  static Address any(int family, std::uint16_t port = 0);

  /// AF_INET, AF_INET6, or AF_UNSPEC while unset.
  int family() const { return storage_.v6.sin6_family; }
  bool set() const { return family() != AF_UNSPEC; }
  std::uint16_t port() const;
  void setPort(std::uint16_t port);
  bool isLoopback() const;
  bool isLinkLocal() const;
  /// Same family and same leading `prefixBits` bits (port ignored).
  bool sameSubnet(const Address& other, unsigned prefixBits) const;

  const sockaddr* raw() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  sockaddr* raw() { return reinterpret_cast<sockaddr*>(&storage_); }
  /// Bytes that the kernel wants for this family; the whole storage while unset.
  socklen_t length() const;

  /// `10.0.0.1<4711>`, `fe80::1%eth0<4711>`, as NCCL's logs print it; "none" while unset.
  std::string text() const;
  /// The address alone.
  std::string hostText() const;

  /// Same family, address, scope and port.
  friend bool operator==(const Address& a, const Address& b);

 private:
  union {
    sockaddr_in6 v6;
    sockaddr_in v4;
  } storage_{.v6 = {}};
};
static_assert(std::is_trivially_copyable_v<Address> && sizeof(Address) == 28);

}  // namespace tutti
