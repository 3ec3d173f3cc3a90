// Links of a machine beside its PCI trees: NVLinks, those from GPU to CPU, between switches, between CPUs.
#pragma once

#include "base/status.h"
#include "topo/machine/pci.h"
#include "topo/xml/xml.h"

namespace tutti::topo {

/// Joins the nodes of `trees`, which `system` describes. Errors: see buildMachine().
Status joinNodes(PciTrees& trees, const XmlElement& system);

}  // namespace tutti::topo
