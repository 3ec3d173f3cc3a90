// The collNet of a test plugin, loaded, opened and connected to nobody else.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <utility>

#include "plugin/network/collnet.h"
#include "plugin/plugin_fixture.h"

namespace tutti::test {

struct OpenCollNet {
  DlLibrary library;
  std::unique_ptr<plugin::LoadedCollNet> source;
  std::unique_ptr<plugin::CollNet> net;
  const TestNetCounts* counts = nullptr;
  plugin::NetHandle handle{};
  void* listener = nullptr;
  void* connection = nullptr;

  explicit OpenCollNet(int version, const plugin::NetOpening& opening = {}) {
    library = DlLibrary::open(pluginPath(version));
    source = plugin::findCollNet(library, pluginPath(version));
    if (source == nullptr) return;
    auto attempt = source->attempt(opening);
    EXPECT_EQ(attempt.why, "");
    net = std::move(attempt.net);
    counts = countsOf(version);
    listener = net->listen(0, handle).value();
    connection = net->connect(std::span(&handle, 1), 0, listener).value();
    EXPECT_NE(connection, nullptr);
  }
  ~OpenCollNet() {
    EXPECT_TRUE(net->close(connection).ok());
    EXPECT_TRUE(net->closeListen(listener).ok());
    EXPECT_EQ(counts->openEnds, 0);
  }
  bool finished(const Result<void*>& request, int expected) {
    int bytes = 0;
    return request.ok() && net->test(request.value(), &bytes).value() && bytes == expected;
  }
};

}  // namespace tutti::test
