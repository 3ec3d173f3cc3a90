#include "transport/net/ib/queue_pair.h"

#include <gtest/gtest.h>

#include "transport/net/ib/connector.h"
#include "transport/net/ib/wire.h"

namespace tutti::net::ib {
namespace {

PortAddress ethernetPort(std::uint8_t last, std::uint8_t number = 1) {
  PortAddress port{.gidIndex = 3, .mtu = IBV_MTU_4096, .ethernet = 1, .number = number};
  port.gid[10] = port.gid[11] = 0xff;
  port.gid[15] = last;
  return port;
}

PortAddress infinibandPort(std::uint8_t last, std::uint8_t subnet = 0, std::uint8_t number = 1) {
  PortAddress port{.lid = last, .mtu = IBV_MTU_4096, .number = number};
  port.gid[0] = 0xfe;
  port.gid[1] = 0x80;
  port.gid[7] = subnet;
  port.gid[15] = last;
  return port;
}

TEST(ReadyToReceive, GoesByGidOverEthernet) {
  QueuePairPath path{.local = ethernetPort(1, 2), .remote = ethernetPort(9, 1), .remoteNumber = 77, .serviceLevel = 3};
  path.remote.mtu = IBV_MTU_1024;
  const ibv_qp_attr attributes = readyToReceive(path, 106);
  EXPECT_EQ(attributes.qp_state, IBV_QPS_RTR);
  EXPECT_EQ(attributes.path_mtu, IBV_MTU_1024) << "the smaller one";
  EXPECT_EQ(attributes.dest_qp_num, 77u);
  EXPECT_EQ(attributes.rq_psn, 0u);
  EXPECT_EQ(attributes.max_dest_rd_atomic, 1);
  EXPECT_EQ(attributes.min_rnr_timer, 12);
  EXPECT_EQ(attributes.ah_attr.is_global, 1);
  EXPECT_EQ(attributes.ah_attr.grh.dgid.raw[15], 9);
  EXPECT_EQ(attributes.ah_attr.grh.sgid_index, 3);
  EXPECT_EQ(attributes.ah_attr.grh.hop_limit, 255);
  EXPECT_EQ(attributes.ah_attr.grh.flow_label, 0u);
  EXPECT_EQ(attributes.ah_attr.grh.traffic_class, 106);
  EXPECT_EQ(attributes.ah_attr.sl, 3);
  EXPECT_EQ(attributes.ah_attr.port_num, 2) << "its own port, whatever the peer's number is";
}

TEST(ReadyToReceive, GoesByLidWithinASubnet) {
  const ibv_qp_attr attributes = readyToReceive({.local = infinibandPort(1), .remote = infinibandPort(9)}, 106);
  EXPECT_EQ(attributes.ah_attr.is_global, 0);
  EXPECT_EQ(attributes.ah_attr.dlid, 9);
}

TEST(ReadyToReceive, GoesByGidIntoAnotherSubnet) {
  const ibv_qp_attr attributes = readyToReceive({.local = infinibandPort(1), .remote = infinibandPort(9, 4)}, 106);
  EXPECT_EQ(attributes.ah_attr.is_global, 1);
  EXPECT_EQ(attributes.ah_attr.grh.dgid.raw[7], 4);
  EXPECT_EQ(attributes.ah_attr.grh.hop_limit, 255);
  EXPECT_EQ(attributes.ah_attr.dlid, 9);
}

TEST(ReadyToReceive, GoesByGidWhereThePortRequiresIt) {
  PortAddress local = infinibandPort(1);
  local.needsGid = 1;
  EXPECT_EQ(readyToReceive({.local = local, .remote = infinibandPort(9)}, 0).ah_attr.is_global, 1);
}

TEST(QueuePairsFor, FollowsTheDeviceOfMorePorts) {
  EXPECT_EQ(queuePairsFor(1, 1, 1), 1u);
  EXPECT_EQ(queuePairsFor(2, 1, 3), 6u);
  EXPECT_EQ(queuePairsFor(1, 4, 2), 8u);
  EXPECT_EQ(queuePairsFor(2, 2, 0), 2u);
  EXPECT_EQ(queuePairsFor(8, 8, 128), kMostQueuePairs);
}

TEST(IbPiece, IsOfWholeLines) {
  EXPECT_EQ(ibPieceBytes(0, 3), 0u);
  EXPECT_EQ(ibPieceBytes(1, 3), 128u);
  EXPECT_EQ(ibPieceBytes(384, 3), 128u);
  EXPECT_EQ(ibPieceBytes(385, 3), 256u);
  EXPECT_EQ(ibPieceBytes(8192, 1), 8192u);
}

TEST(PortAddress, SaysAllThatTellsPortsApart) {
  PortAddress port = ethernetPort(7, 2);
  std::string("mlx5_0").copy(port.nic.data(), port.nic.size() - 1);
  EXPECT_EQ(port.text(), "mlx5_0:2 (GID 3 ::ffff:0.0.0.7)");
  PortAddress other = infinibandPort(7);
  EXPECT_NE(other.text().find("LID 7"), std::string::npos);
}

}  // namespace
}  // namespace tutti::net::ib
