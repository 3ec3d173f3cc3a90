#include "layout.h"

ncclConfig_t layoutConfig = NCCL_CONFIG_INITIALIZER;
ncclSimInfo_t layoutSimInfo = NCCL_SIM_INFO_INITIALIZER;
ncclDevCommRequirements_t layoutRequirements = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
ncclCommProperties_t layoutProperties = NCCL_COMM_PROPERTIES_INITIALIZER;
