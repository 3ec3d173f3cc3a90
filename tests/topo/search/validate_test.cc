// Graphs made wrong by hand: each is refused, with a sentence that names what is wrong.
#include "topo/search/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "topo/search/sketch.h"

namespace tutti::topo {
namespace {

using test::Checked;
using test::fourGpus;
using test::Sketch;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(ValidateGraph, AcceptsTwoRingsInOppositeDirections) {
  const test::Checked four(test::fourGpus());
  Graph ring = four.ring(40);
  four.add(ring, {0, 1, 2, 3});
  four.add(ring, {3, 2, 1, 0});
  EXPECT_THAT(four.faults(ring), IsEmpty());
}

TEST(ValidateGraph, NamesTheLinkThatTwoRingsInOneDirectionOverload) {
  const test::Checked four(test::fourGpus());
  Graph ring = four.ring(40);
  for (int i = 0; i < 2; ++i) four.add(ring, {0, 1, 2, 3});
  const auto faults = four.faults(ring);
  EXPECT_EQ(faults.size(), 4U);
  EXPECT_THAT(faults, Contains(AllOf(HasSubstr("ring: the NVLink"), HasSubstr(" -> "),
                                     HasSubstr("carries 80.000 GB/s and can carry 40.000 (channels 0 1)"))));
}

TEST(ValidateGraph, AllowsOnePartInAThousandForRounding) {
  const test::Checked four(test::fourGpus());
  Graph ring = four.ring(40.03F);
  four.add(ring, {0, 1, 2, 3});
  EXPECT_THAT(four.faults(ring), IsEmpty());
  ring.bwIntra = 40.05F;
  EXPECT_EQ(four.faults(ring).size(), 4U);
}

TEST(ValidateGraph, NamesTheGpuThatStandsTwiceAndTheOneThatIsMissing) {
  const test::Checked four(test::fourGpus());
  Graph ring = four.ring(20);
  four.add(ring, {0, 1, 2, 3});
  four.add(ring, {0, 1, 2, 1});
  const auto faults = four.faults(ring);
  EXPECT_EQ(faults.size(), 2U);
  EXPECT_THAT(faults, Contains(AllOf(HasSubstr("ring: channel 1"), HasSubstr(four.gpu(1) + " stands twice"))));
  EXPECT_THAT(faults, Contains(AllOf(HasSubstr("ring: channel 1"), HasSubstr(four.gpu(3) + " is missing"))));
}

TEST(ValidateGraph, RefusesTreesThatAreCyclicOrDoNotSpan) {
  const test::Checked four(test::fourGpus());
  for (const Pattern pattern : {Pattern::Tree, Pattern::BalancedTree}) {
    Graph cyclic = four.graph(GraphId::Tree, pattern, 20);
    four.add(cyclic, {0, 1, 2, 3, 0});
    EXPECT_THAT(four.faults(cyclic), Contains(HasSubstr(four.gpu(0) + " stands twice, which closes a circle")));
    Graph partial = four.graph(GraphId::Tree, pattern, 20);
    four.add(partial, {0, 1, 2});
    EXPECT_THAT(four.faults(partial), Contains(HasSubstr(four.gpu(3) + " is missing")));
  }
}

TEST(ValidateGraph, RefusesNodesThatAreNoGpusOrNics) {
  const test::Checked four(test::fourGpus());
  Graph ring = four.ring(10);
  four.add(ring, {0, 1, 2, 3}, 0, 0);
  ring.channels[0].gpus.push_back(four.sketch.cpu);
  ring.channels[0].netOut = four.sketch.gpus[0];
  const auto faults = four.faults(ring, true);
  EXPECT_THAT(faults, Contains(HasSubstr("is not a GPU of the machine")));
  EXPECT_THAT(faults, Contains(HasSubstr("is not a NIC of the machine")));
  ring.channels[0].gpus.back() = 10000;
  EXPECT_THAT(four.faults(ring, true), Contains(HasSubstr("node 10000 is not a GPU of the machine")));
}

TEST(ValidateGraph, WantsChannelsAndBandwidth) {
  const test::Checked four(test::fourGpus());
  EXPECT_THAT(four.faults(four.ring(10)), Contains(HasSubstr("has no channels")));
  EXPECT_THAT(four.faults(four.graph(GraphId::Nvls, Pattern::Nvls, 0)), IsEmpty());
  Graph ring = four.ring(10);
  four.add(ring, {0, 1, 2, 3});
  ring.bwIntra = -1;
  EXPECT_THAT(four.faults(ring), Contains(HasSubstr("bandwidth inside the machine is -1")));
  ring.pattern = Pattern::Tree;
  EXPECT_THAT(four.faults(ring), Contains(HasSubstr("cannot have the pattern")));
}

TEST(ValidateGraph, WantsAPatternThatTheAlgorithmCanHave) {
  const test::Checked four(test::fourGpus());
  const auto refused = [&](GraphId id, Pattern pattern) {
    Graph graph = four.graph(id, pattern, 10);
    four.add(graph, {0, 1, 2, 3});
    return std::ranges::any_of(four.faults(graph), [](const std::string& fault) {
      return fault.find("cannot have the pattern") != std::string::npos;
    });
  };
  EXPECT_FALSE(refused(GraphId::Tree, Pattern::SplitTree));
  EXPECT_TRUE(refused(GraphId::Tree, Pattern::Ring));
  EXPECT_FALSE(refused(GraphId::CollNetChain, Pattern::Tree));
  EXPECT_TRUE(refused(GraphId::CollNetChain, Pattern::BalancedTree));
  EXPECT_FALSE(refused(GraphId::CollNetDirect, Pattern::Tree));
  EXPECT_TRUE(refused(GraphId::CollNetDirect, Pattern::SplitTree));
  EXPECT_TRUE(refused(GraphId::Nvls, Pattern::BalancedTree));
}

TEST(ValidateGraph, WantsOneOrderWhereAllChannelsAreCalledTheSame) {
  const test::Checked four(test::fourGpus());
  Graph ring = four.ring(20);
  four.add(ring, {0, 1, 2, 3});
  four.add(ring, {1, 2, 3, 0});
  EXPECT_THAT(four.faults(ring), IsEmpty());
  ring.sameChannels = true;
  EXPECT_THAT(four.faults(ring), Contains(HasSubstr("channel 1: has another order")));
}

TEST(ValidateGraph, RefusesWaysLongerThanTheGraphStates) {
  const test::Checked four(test::fourGpus());
  Graph ring = four.ring(10);
  four.add(ring, {0, 2, 1, 3});
  EXPECT_THAT(four.faults(ring), Contains(AllOf(HasSubstr("from " + four.gpu(0) + " to " + four.gpu(2)),
                                                HasSubstr("is NVB, further than the NVL that the graph states"))));
  ring.typeIntra = PathType::Nvb;
  EXPECT_THAT(four.faults(ring), IsEmpty());
}

TEST(ValidateGraph, WantsOneRailUnlessChannelsComeInPairs) {
  const test::Checked four(test::fourGpus());
  Graph ring = four.ring(20, 12);
  four.add(ring, {0, 1, 2, 3}, 0, 1);
  four.add(ring, {3, 2, 1, 0}, 1, 0);
  EXPECT_THAT(four.faults(ring, true),
              Contains(AllOf(HasSubstr("receives through " + four.net(0)), HasSubstr("of another rail"))));
  ring.crossNic = 2;
  EXPECT_THAT(four.faults(ring, true), IsEmpty());
  std::swap(ring.channels[1].netIn, ring.channels[1].netOut);
  std::reverse(ring.channels[1].gpus.begin(), ring.channels[1].gpus.end());
  EXPECT_THAT(four.faults(ring, true),
              Contains(AllOf(HasSubstr("channel 1"), HasSubstr("are not the NICs of channel 0 swapped"))));
  ring.crossNic = 1;
  EXPECT_THAT(four.faults(ring, true), IsEmpty());
}

TEST(ValidateGraph, TakesRailIdsForRailsWhereTheyAreKnown) {
  test::Sketch sketch = test::fourGpus();
  sketch.addNet(sketch.switches[0], 25, {0x200, 1, 7});
  sketch.addNet(sketch.switches[1], 25, {0x201, 1, 7});
  sketch.addNet(sketch.switches[1], 25, {0x200, 1, 8});
  const test::Checked four(sketch);
  Graph ring = four.ring(20, 10);
  four.add(ring, {0, 1, 2, 3}, 2, 3);
  EXPECT_THAT(four.faults(ring, true), IsEmpty());
  ring.channels[0].netOut = four.sketch.nets[4];
  EXPECT_THAT(four.faults(ring, true), Contains(HasSubstr("of another rail")));
}

TEST(ValidateGraph, NeverMixesPlanes) {
  test::Sketch sketch = test::fourGpus();
  sketch.addNet(sketch.switches[0], 25, {0x200, 1, 1, 0});
  sketch.addNet(sketch.switches[1], 25, {0x201, 1, 1, 1});
  const test::Checked four(sketch);
  Graph ring = four.ring(20, 10);
  ring.crossNic = 1;
  four.add(ring, {0, 1, 2, 3}, 2, 3);
  EXPECT_THAT(four.faults(ring, true), Contains(HasSubstr("of another plane")));
}

TEST(ValidateGraph, CountsAnAdapterPortOnceHoweverOftenItIsListed) {
  test::Sketch sketch(CpuKind::Amd);
  sketch.addSwitch(48);
  sketch.addGpu(sketch.switches[0], 80, 48);
  for (int i = 0; i < 2; ++i) sketch.addNet(sketch.switches[0], 25, {0x100, 1});
  const test::Checked one(sketch);
  Graph ring = one.ring(12, 12);
  one.add(ring, {0}, 0, 0);
  one.add(ring, {0}, 1, 1);
  EXPECT_THAT(one.faults(ring, true), IsEmpty());
  ring.bwInter = 15;
  const auto faults = one.faults(ring, true);
  EXPECT_EQ(faults.size(), 2U);
  EXPECT_THAT(faults, Contains(HasSubstr("receives 30.000 GB/s and can do 25.000")));
  EXPECT_THAT(faults, Contains(HasSubstr("sends 30.000 GB/s and can do 25.000")));
}

TEST(ValidateGraph, RefusesANicOverItsCapacity) {
  const test::Checked four(test::fourGpus());
  Graph ring = four.ring(40, 26);
  four.add(ring, {0, 1, 2, 3}, 0, 0);
  ring.typeInter = PathType::Phb;
  EXPECT_THAT(four.faults(ring, true), Contains(HasSubstr("the port of " + four.net(0) + " receives 26.000 GB/s")));
}

TEST(ValidateGraph, WantsOneNicForATree) {
  const test::Checked four(test::fourGpus());
  Graph tree = four.graph(GraphId::Tree, Pattern::Tree, 20, 12);
  tree.crossNic = 1;
  tree.typeInter = PathType::Phb;
  four.add(tree, {0, 1, 2, 3}, 0, 1);
  EXPECT_THAT(four.faults(tree, true), Contains(HasSubstr("a tree's must be one")));
}

TEST(ValidateGraph, BelievesThatThereIsNoNetworkOnlyWhereNoGpuReachesANic) {
  const auto withoutNetwork = [](const test::Checked& machine) {
    Graph ring = machine.ring(0.1F);
    ring.bwInter = 0;
    ring.typeInter = PathType::Dis;
    return ring;
  };
  const test::Checked four(test::fourGpus());
  Graph ring = withoutNetwork(four);
  four.add(ring, {0, 1, 2, 3});
  EXPECT_THAT(four.faults(ring, true), Contains(HasSubstr("uses no NIC, though " + four.gpu(0) + " reaches")));
  test::Sketch alone(CpuKind::Amd);
  alone.addGpu(alone.cpu, 80, 24);
  const test::Checked one(alone);
  Graph none = withoutNetwork(one);
  one.add(none, {0});
  EXPECT_THAT(one.faults(none, true), IsEmpty());
}

TEST(ValidateGraph, LetsGpusMeetOverTheNetworkOnlyInTheLastResort) {
  test::Checked four(test::fourGpus());
  four.paths.of(four.sketch.gpus[1], four.sketch.gpus[2]) = {PathType::Net, 0, {}};
  Graph ring = four.ring(0.1F);
  four.add(ring, {0, 1, 2, 3});
  EXPECT_THAT(four.faults(ring), IsEmpty());
  four.add(ring, {0, 1, 2, 3});
  EXPECT_THAT(four.faults(ring), Contains(HasSubstr("no way inside the machine (NET)")));
  ring.bwIntra = 0.05F;
  EXPECT_THAT(four.faults(ring), IsEmpty());
}

TEST(ValidateGraph, WantsCollNetsNicsToBeCapable) {
  const test::Checked four(test::fourGpus());
  Graph chain = four.graph(GraphId::CollNetChain, Pattern::Tree, 20, 12);
  four.add(chain, {0, 1, 2, 3}, 0, 0);
  EXPECT_THAT(four.faults(chain, true), Contains(HasSubstr("not both capable of collectives")));
}

}  // namespace
}  // namespace tutti::topo
