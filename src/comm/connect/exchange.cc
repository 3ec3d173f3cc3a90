#include "comm/connect/exchange.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/log.h"

namespace tutti::comm {

namespace {

constexpr int kConnectTag = 0x1000;

int tagOf(LinkPhase phase, const LinkRequest& link, device::Direction senderSide) {
  const int place = static_cast<int>(phase) * device::kConnKinds + static_cast<int>(link.kind);
  return kConnectTag + place * 2 + (senderSide == device::Direction::Send ? 0 : 1);
}

int ownTag(LinkPhase phase, const LinkRequest& link) {
  return tagOf(phase, link, link.direction);
}

int peersTag(LinkPhase phase, const LinkRequest& link) {
  return tagOf(phase, link,
               link.direction == device::Direction::Send ? device::Direction::Recv : device::Direction::Send);
}

/// The channels, then one handle for each (all zero where opening failed, so that the size is fixed).
std::vector<std::byte> handleMessage(const LinkRequest& link) {
  const auto channels = static_cast<std::size_t>(std::popcount(link.channels));
  return std::vector<std::byte>(sizeof(ChannelMask) + channels * sizeof(transport::ConnectHandle));
}

}  // namespace

bool LinkExchange::arrived(const LinkAttempt& attempt, LinkPhase phase) const {
  return control_.arrived(attempt.request.peer, peersTag(phase, attempt.request));
}

Status LinkExchange::sendHandles(const LinkAttempt& attempt) const {
  std::vector<std::byte> message = handleMessage(attempt.request);
  const ChannelMask good = attempt.good ? attempt.request.channels : 0;
  std::memcpy(message.data(), &good, sizeof(good));
  for (std::size_t c = 0; attempt.good && c < attempt.endpoints.size(); ++c) {
    const transport::ConnectHandle handle = attempt.endpoints[c]->handle();
    std::memcpy(message.data() + sizeof(good) + c * sizeof(handle), &handle, sizeof(handle));
  }
  return control_.send(attempt.request.peer, ownTag(LinkPhase::Handles, attempt.request), message);
}

Result<std::vector<transport::ConnectHandle>> LinkExchange::recvHandles(const LinkAttempt& attempt) const {
  const LinkRequest& link = attempt.request;
  std::vector<std::byte> message = handleMessage(link);
  TRY(control_.recv(link.peer, peersTag(LinkPhase::Handles, link), message));
  ChannelMask peerGood = 0;
  std::memcpy(&peerGood, message.data(), sizeof(peerGood));
  std::vector<transport::ConnectHandle> handles;
  if (peerGood == 0 || !attempt.good) return handles;
  if (peerGood != link.channels) {
    return fail(ncclInternalError, "Rank {} and rank {} want to be joined on different channels: {:#x} and {:#x}",
                control_.rank(), link.peer, link.channels, peerGood);
  }
  handles.resize(static_cast<std::size_t>(std::popcount(link.channels)));
  std::memcpy(handles.data(), message.data() + sizeof(peerGood), handles.size() * sizeof(transport::ConnectHandle));
  return handles;
}

Status LinkExchange::sendWord(const LinkAttempt& attempt, LinkPhase phase) const {
  const std::uint64_t good = attempt.good ? 1 : 0;
  return control_.send(attempt.request.peer, ownTag(phase, attempt.request), std::as_bytes(std::span(&good, 1)));
}

Result<bool> LinkExchange::recvWord(const LinkAttempt& attempt, LinkPhase phase) const {
  std::uint64_t good = 0;
  TRY(control_.recv(attempt.request.peer, peersTag(phase, attempt.request),
                    std::as_writable_bytes(std::span(&good, 1))));
  return good != 0;
}

}  // namespace tutti::comm
