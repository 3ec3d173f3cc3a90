// Messages over a connection whose ends are driven by turns, with every byte looked at, also where nobody may write.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "transport/net/ib/ib_pair.h"

namespace tutti::test {

struct IbFlowShape {
  std::size_t window = 16;  ///< receives under way
  std::size_t group = 1;    ///< messages of a receive
  std::size_t bytes = 700;  ///< of the longest message
};

/// What a sender has got rid of it overwrites, and a receiver what it has looked at: what goes twice, or comes late,
/// shows.
class IbFlow {
 public:
  IbFlow(IbPair& pair, IbFlowShape shape)
      : pair_(pair),
        shape_(shape),
        places_(2 * shape.window),
        from_(pair.sendNet, pair.sender, places_ * shape.group * shape.bytes),
        to_(pair.recvNet, pair.receiver, places_ * shape.group * shape.bytes) {
    std::fill(to_.data.begin(), to_.data.end(), kSeen);
  }

  /// One turn of both ends. False: an end has failed.
  bool turn() { return turnRecv() && turnSend(); }
  bool turnSend() {
    while (nextSend_ < rows_ * shape_.group && nextSend_ < (doneSends_ / shape_.group + shape_.window) * shape_.group) {
      const std::size_t row = nextSend_ / shape_.group;
      const std::size_t i = nextSend_ % shape_.group;
      fill(row, i);
      auto sent = pair_.sendNet.isend(pair_.sender, place(from_, row, i, bytesOf(row, i)));
      if (!note(sent.status())) return false;
      if (sent.value() == nullptr) break;
      sends_.push_back({sent.value(), nextSend_++});
    }
    for (std::size_t k = 0; k < sends_.size();) {
      auto over = pair_.sendNet.test(sends_[k].first, {});
      if (!note(over.status())) return false;
      if (!over.value()) {
        ++k;
        continue;
      }
      const std::size_t number = sends_[k].second;
      std::memset(at(from_, number / shape_.group, number % shape_.group), kGone, shape_.bytes);
      sends_.erase(sends_.begin() + static_cast<std::ptrdiff_t>(k));
      ++doneSends_;
    }
    return true;
  }
  bool turnRecv() {
    while (nextRecv_ < rows_ && recvs_.size() < shape_.window) {
      std::vector<plugin::NetBuffer> places;
      for (std::size_t i = 0; i < shape_.group; ++i) {
        untouched(nextRecv_, i);
        places.push_back(place(to_, nextRecv_, i, shape_.bytes));
      }
      auto received = pair_.recvNet.irecv(pair_.receiver, places);
      if (!note(received.status())) return false;
      if (received.value() == nullptr) break;
      recvs_.push_back({received.value(), nextRecv_++});
    }
    for (std::size_t k = 0; k < recvs_.size();) {
      std::vector<int> sizes(shape_.group, -1);
      auto over = pair_.recvNet.test(recvs_[k].first, sizes);
      if (!note(over.status())) return false;
      if (!over.value()) {
        ++k;
        continue;
      }
      for (std::size_t i = 0; i < shape_.group; ++i) compare(recvs_[k].second, i, sizes[i]);
      recvs_.erase(recvs_.begin() + static_cast<std::ptrdiff_t>(k));
      ++doneRecvs_;
    }
    return true;
  }
  bool done() const { return doneRecvs_ == rows_ && doneSends_ == rows_ * shape_.group; }
  std::size_t received() const { return doneRecvs_; }
  Status failure() const { return failure_; }
  /// As many receives more.
  void run(std::size_t rows) {
    const std::size_t wanted = doneRecvs_ + rows;
    EXPECT_TRUE(until([&] { return !turn() || doneRecvs_ >= wanted; }));
    EXPECT_TRUE(failure_.ok());
  }
  /// So many more than are posted, and no others.
  void finish(std::size_t more = 100) {
    rows_ = std::max(nextRecv_, (nextSend_ + shape_.group - 1) / shape_.group) + more;
    EXPECT_TRUE(until([&] { return !turn() || done(); })) << doneRecvs_ << " of " << rows_;
    EXPECT_TRUE(failure_.ok());
    for (std::size_t row = 0; row < places_; ++row) {
      for (std::size_t i = 0; i < shape_.group; ++i) untouched(row, i);
    }
  }

 private:
  static constexpr unsigned char kSeen = 0xdd, kGone = 0xbb;
  std::size_t bytesOf(std::size_t row, std::size_t i) const { return (row * 7 + i * 131) % (shape_.bytes + 1); }
  static unsigned char byteOf(std::size_t row, std::size_t i, std::size_t k) {
    return static_cast<unsigned char>((row * 31 + i * 17 + k * 3) % 151);
  }
  unsigned char* at(IbBuffer& buffer, std::size_t row, std::size_t i) const {
    return buffer.data.data() + ((row % places_) * shape_.group + i) * shape_.bytes;
  }
  plugin::NetBuffer place(IbBuffer& buffer, std::size_t row, std::size_t i, std::size_t bytes) const {
    return {at(buffer, row, i), bytes, static_cast<int>(i), buffer.registration};
  }
  void fill(std::size_t row, std::size_t i) {
    for (std::size_t k = 0; k < shape_.bytes; ++k) at(from_, row, i)[k] = byteOf(row, i, k);
  }
  void compare(std::size_t row, std::size_t i, int size) {
    const std::size_t bytes = bytesOf(row, i);
    EXPECT_EQ(size, static_cast<int>(bytes)) << "row " << row << ", message " << i;
    unsigned char* const here = at(to_, row, i);
    std::size_t wrong = 0;
    for (std::size_t k = 0; k < shape_.bytes; ++k) wrong += here[k] != (k < bytes ? byteOf(row, i, k) : kSeen) ? 1 : 0;
    EXPECT_EQ(wrong, 0u) << "row " << row << ", message " << i << ", " << bytes << " bytes";
    std::memset(here, kSeen, shape_.bytes);
  }
  void untouched(std::size_t row, std::size_t i) {
    const unsigned char* const here = at(to_, row, i);
    EXPECT_TRUE(std::all_of(here, here + shape_.bytes, [](unsigned char one) { return one == kSeen; }))
        << "written after it was handed out, before row " << row;
  }
  bool note(Status status) {
    if (!status.ok() && failure_.ok()) failure_ = status;
    return status.ok();
  }

  IbPair& pair_;
  IbFlowShape shape_;
  std::size_t places_;
  IbBuffer from_, to_;
  std::vector<std::pair<void*, std::size_t>> sends_, recvs_;
  std::size_t rows_ = std::size_t{1} << 40;  ///< without an end, until finish()
  std::size_t nextSend_ = 0, nextRecv_ = 0, doneSends_ = 0, doneRecvs_ = 0;
  Status failure_;
};

}  // namespace tutti::test
