#include "bootstrap/link/link.h"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "bootstrap/link/poller.h"

namespace tutti::bootstrap {
namespace {

constexpr std::size_t kCopyBelow = 4096;  ///< smaller payloads travel in one piece with their header
constexpr Link::End kNoMemory{Link::End::Kind::Broken, ENOMEM};

template <class T>
SharedBytes chunkOf(const T& value) {
  return std::make_shared<const Bytes>(encodeValue(value));
}

}  // namespace

Link::Link(Socket socket, ServerHandshake server, std::uint32_t maxFrame)
    : socket_(std::move(socket)), handshake_(server), maxFrame_(maxFrame) {
  expect(Stage::AwaitHello, sizeof(Hello));
}

Link::Link(Socket socket, ClientHandshake client, std::uint32_t maxFrame, std::size_t said)
    : socket_(std::move(socket)), handshake_(client), maxFrame_(maxFrame) {
  const auto hello = std::as_bytes(std::span(&client.hello(), 1)).subspan(said);
  if (!hello.empty()) early_.push_back(std::make_shared<const Bytes>(hello.begin(), hello.end()));
  expect(Stage::AwaitChallenge, sizeof(Challenge));
}

void Link::expect(Stage stage, std::size_t bytes) {
  stage_ = stage;
  in_.assign(bytes, std::byte{});
  got_ = 0;
}

void Link::send(FrameType type, std::int32_t tag, const SharedBytes& payload, std::uint8_t op) {
  const std::size_t bytes = payload ? payload->size() : 0;
  const FrameHeader header{static_cast<std::uint32_t>(bytes), static_cast<std::uint8_t>(type), op, 0, tag};
  Bytes head = encodeValue(header);
  const bool together = bytes < kCopyBelow;
  if (together && payload) head.insert(head.end(), payload->begin(), payload->end());
  auto first = std::make_shared<const Bytes>(std::move(head));
  const std::size_t before = out_.size();
  try {
    out_.push_back(std::move(first));
    if (!together) out_.push_back(payload);
  } catch (const std::bad_alloc&) {
    out_.resize(before);  // a header without its payload would garble all that follows
    throw;
  }
}

/// Reads once. False: there is nothing more to read just now.
bool Link::readOn(std::vector<Frame>& frames) {
  if (end_) return false;
  const IoOutcome outcome = socket_.tryRecv(std::span(in_).subspan(got_));
  if (outcome.kind == IoOutcome::Kind::WouldBlock) return false;
  if (outcome.kind == IoOutcome::Kind::Closed) {
    end_ = End{End::Kind::Closed, outcome.error};
  } else if (!outcome.done()) {
    end_ = End{End::Kind::Broken, outcome.error};
  } else {
    return cameIn(outcome.bytes, frames);
  }
  return true;
}

/// So many bytes more are in `in_`. False: what there is more is not to be read.
bool Link::cameIn(std::size_t bytes, std::vector<Frame>& frames) {
  got_ += bytes;
  if (stage_ == Stage::AwaitHello && !greet()) return false;
  if (got_ == in_.size()) onComplete(frames);
  return true;
}

void Link::receive(std::vector<Frame>& frames) {
  try {
    while (readOn(frames)) {
    }
  } catch (const std::bad_alloc&) {
    end_ = kNoMemory;  // where the next frame begins is not known any more
  }
}

void Link::receiveGreeting() {
  std::vector<Frame> none;
  try {
    while ((stage_ == Stage::AwaitHello || stage_ == Stage::AwaitChallenge) && readOn(none)) {
    }
  } catch (const std::bad_alloc&) {
    end_ = kNoMemory;
  }
}

void Link::receiveGreeting(std::span<const std::byte> first) {
  std::vector<Frame> none;
  std::copy(first.begin(), first.end(), in_.begin());
  if (!first.empty() && !cameIn(first.size(), none)) return;
  receiveGreeting();
}

void Link::onComplete(std::vector<Frame>& frames) {
  switch (stage_) {
    case Stage::AwaitHello:
      return onHello();
    case Stage::AwaitProof:
      return onProof();
    case Stage::AwaitChallenge:
      return onChallenge();
    case Stage::Header:
      return onHeader(frames);
    case Stage::Payload:
      frames.push_back({header_, std::move(in_)});
      return expect(Stage::Header, sizeof(FrameHeader));
  }
}

void Link::refuse(Verdict verdict) {
  end_ = End{End::Kind::Refused, 0, verdict};
}

bool Link::greet() {
  if (got_ < sizeof(HelloHead)) return true;
  Challenge challenge;
  const Verdict verdict =
      ServerHandshake::greet(*decodeValue<HelloHead>(std::span(in_).first(sizeof(HelloHead))), challenge);
  if (verdict == Verdict::OtherVersion) {
    early_.push_back(chunkOf(challenge));
    flush();
    // A socket that is closed with bytes unread loses what it has sent.
    std::array<std::byte, 1024> rest;
    (void)socket_.tryRecv(rest);
    setAbrupt(fd(), false);
  }
  if (verdict != Verdict::Ok) refuse(verdict);
  return verdict == Verdict::Ok;
}

void Link::onHello() {
  // A client that is closed in order after all of its hello learns that its pass was wrong; one that is reset may come
  // again (paced_listener.h).
  setAbrupt(fd(), false);
  Challenge challenge;
  const Verdict verdict = std::get<ServerHandshake>(handshake_).challenge(*decodeValue<Hello>(in_), challenge);
  if (verdict != Verdict::Ok) return refuse(verdict);
  early_.push_back(chunkOf(challenge));
  flush();
  expect(Stage::AwaitProof, sizeof(Proof));
}

void Link::onProof() {
  const Verdict verdict = std::get<ServerHandshake>(handshake_).verify(*decodeValue<Proof>(in_));
  if (verdict != Verdict::Ok) return refuse(verdict);
  expect(Stage::Header, sizeof(FrameHeader));
  flush();
}

void Link::onChallenge() {
  Proof proof;
  const Challenge challenge = *decodeValue<Challenge>(in_);
  const Verdict verdict = std::get<ClientHandshake>(handshake_).answer(challenge, proof);
  if (verdict != Verdict::Ok) {
    refuse(verdict);
    end_->version = ClientHandshake::versionOf(challenge);
    return;
  }
  early_.push_back(chunkOf(proof));
  expect(Stage::Header, sizeof(FrameHeader));
  flush();
}

void Link::onHeader(std::vector<Frame>& frames) {
  header_ = *decodeValue<FrameHeader>(in_);
  if (header_.type == 0 || header_.type > kLastFrameType || header_.bytes > maxFrame_) return refuse(Verdict::NotTutti);
  if (header_.bytes > 0) return expect(Stage::Payload, header_.bytes);
  frames.push_back({header_, {}});
  expect(Stage::Header, sizeof(FrameHeader));
}

bool Link::flushQueue(std::deque<SharedBytes>& queue) {
  while (!queue.empty()) {
    const IoOutcome outcome = socket_.trySend(std::span(*queue.front()).subspan(sent_));
    if (outcome.kind == IoOutcome::Kind::WouldBlock) return false;
    if (!outcome.done()) {
      writeFailed_ = true;
      return false;
    }
    sent_ += outcome.bytes;
    if (sent_ < queue.front()->size()) continue;
    queue.pop_front();
    sent_ = 0;
  }
  return true;
}

void Link::flush() {
  if (writeFailed_) {
    early_.clear();
    out_.clear();
    return;
  }
  if (flushQueue(early_) && open()) flushQueue(out_);
}

}  // namespace tutti::bootstrap
