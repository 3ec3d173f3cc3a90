// One port of a NIC.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace tutti::net::ib {

class Nic;

/// One port that can be used, as it was when the process looked.
struct IbPort {
  std::shared_ptr<Nic> nic;
  int number = 0;
  bool ethernet = false;  ///< RoCE; else InfiniBand
  int speedMbps = 0;
  std::string pciPath;       ///< in sysfs, of the card's function 0; "": unknown
  std::string exactPciPath;  ///< of its own function
  int place = 0;             ///< NetProperties::port: ports of the card before it, counted in
  std::uint64_t guid = 0;    ///< equal on all ports of a card
  int rail = -1;
  int plane = -1;
  bool adaptive = false;  ///< its packets may overtake each other

  /// "mlx5_0:1"
  std::string text() const;
};

}  // namespace tutti::net::ib
