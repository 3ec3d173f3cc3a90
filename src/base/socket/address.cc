#include "base/socket/address.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <net/if.h>
#include <netdb.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <system_error>

#include "base/log.h"

namespace tutti {

namespace {

std::optional<std::uint16_t> parsePort(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return port;
}

Result<Address> resolve(const std::string& host, std::uint16_t port, int family) {
  addrinfo hints{};
  hints.ai_family = family;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, [](addrinfo* list) {
    if (list != nullptr) ::freeaddrinfo(list);
  });
  if (error != 0) {
    return fail(ncclInvalidArgument, "The address of host \"{}\" could not be found: {}", host, ::gai_strerror(error));
  }
  Address address = Address::from(found->ai_addr);
  address.setPort(port);
  return address;
}

bool sameBits(const void* a, const void* b, std::size_t bytes, unsigned prefixBits) {
  const auto* left = static_cast<const unsigned char*>(a);
  const auto* right = static_cast<const unsigned char*>(b);
  const std::size_t whole = std::min<std::size_t>(prefixBits / 8, bytes);
  if (std::memcmp(left, right, whole) != 0) return false;
  const unsigned rest = prefixBits % 8;
  if (rest == 0 || whole == bytes) return true;
  return ((left[whole] ^ right[whole]) >> (8 - rest)) == 0;
}

}  // namespace

Result<Address> Address::parse(std::string_view text, int family) {
  const std::size_t colon = text.rfind(':');
  const bool bracketed = text.starts_with('[') && colon != 0 && colon < text.size() && text[colon - 1] == ']';
  const auto port = colon == std::string_view::npos ? std::nullopt : parsePort(text.substr(colon + 1));
  std::string host(text.substr(0, std::min(colon, text.size())));
  if (bracketed) host = host.substr(1, host.size() - 2);
  const bool bareV6 = !bracketed && host.find(':') != std::string::npos;
  if (!port || host.empty() || bareV6) {
    return fail(ncclInvalidArgument,
                "\"{}\" is no address: expected ipv4:port, [ipv6]:port, [ipv6%interface]:port or host:port", text);
  }
  return resolve(host, *port, family);
}

Address Address::from(const sockaddr* address) {
  Address result;
  if (address == nullptr) return result;
  if (address->sa_family == AF_INET) std::memcpy(&result.storage_, address, sizeof(sockaddr_in));
  if (address->sa_family == AF_INET6) std::memcpy(&result.storage_, address, sizeof(sockaddr_in6));
  return result;
}

Address Address::loopback(int family, std::uint16_t port) {
  Address result = any(family, port);
  if (family == AF_INET) result.storage_.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (family == AF_INET6) result.storage_.v6.sin6_addr = in6addr_loopback;
  return result;
}

Address Address::any(int family, std::uint16_t port) {
  Address result;
  result.storage_.v6.sin6_family = static_cast<sa_family_t>(family);
  result.setPort(port);
  return result;
}

// The port lies at the same place in both families.
static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
std::uint16_t Address::port() const {
  return ntohs(storage_.v6.sin6_port);
}
void Address::setPort(std::uint16_t port) {
  storage_.v6.sin6_port = htons(port);
}

bool Address::isLoopback() const {
  if (family() == AF_INET) return (ntohl(storage_.v4.sin_addr.s_addr) >> 24) == 127;
  return family() == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&storage_.v6.sin6_addr);
}

bool Address::isLinkLocal() const {
  if (family() == AF_INET) return (ntohl(storage_.v4.sin_addr.s_addr) >> 16) == 0xa9fe;
  return family() == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&storage_.v6.sin6_addr);
}

bool Address::sameSubnet(const Address& other, unsigned prefixBits) const {
  if (family() != other.family()) return false;
  if (family() == AF_INET) return sameBits(&storage_.v4.sin_addr, &other.storage_.v4.sin_addr, 4, prefixBits);
  return family() == AF_INET6 && sameBits(&storage_.v6.sin6_addr, &other.storage_.v6.sin6_addr, 16, prefixBits);
}

socklen_t Address::length() const {
  return family() == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

std::string Address::hostText() const {
  if (!set()) return "none";
  std::array<char, INET6_ADDRSTRLEN> buffer{};
  const void* bytes = family() == AF_INET ? static_cast<const void*>(&storage_.v4.sin_addr) : &storage_.v6.sin6_addr;
  ::inet_ntop(family(), bytes, buffer.data(), buffer.size());
  std::string text = buffer.data();
  if (family() != AF_INET6 || storage_.v6.sin6_scope_id == 0) return text;
  std::array<char, IF_NAMESIZE> name{};
  const unsigned scope = storage_.v6.sin6_scope_id;
  if (::if_indextoname(scope, name.data()) != nullptr) return fmt::format("{}%{}", text, name.data());
  return fmt::format("{}%{}", text, scope);
}

std::string Address::text() const {
  return set() ? fmt::format("{}<{}>", hostText(), port()) : "none";
}

bool operator==(const Address& a, const Address& b) {
  if (a.family() != b.family() || a.port() != b.port()) return false;
  if (a.family() == AF_INET) return a.storage_.v4.sin_addr.s_addr == b.storage_.v4.sin_addr.s_addr;
  return a.storage_.v6.sin6_scope_id == b.storage_.v6.sin6_scope_id &&
         std::memcmp(&a.storage_.v6.sin6_addr, &b.storage_.v6.sin6_addr, sizeof(in6_addr)) == 0;
}

}  // namespace tutti
