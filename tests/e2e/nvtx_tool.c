/* A tool that listens to NVTX, as Nsight does: a line on standard error for each range and its payload. */
#include <nvtx3/nvToolsExtPayload.h>
#include <stdio.h>
#include <string.h>

static int domainOfNccl;

static nvtxDomainHandle_t domainCreate(const char* name) {
  fprintf(stderr, "nvtx domain %s\n", name);
  return (nvtxDomainHandle_t)&domainOfNccl;
}

static void domainDestroy(nvtxDomainHandle_t domain) {
  fprintf(stderr, "nvtx domain %s destroyed\n", domain == (nvtxDomainHandle_t)&domainOfNccl ? "known" : "unknown");
}

/* What the payload means is known from the schema alone. */
static nvtxPayloadSchemaEntry_t fields[16];
static size_t nFields;
static uint64_t schema;
static nvtxPayloadEnumAttr_t enums[4];
static size_t nEnums;

static void printValue(const nvtxPayloadSchemaEntry_t* field, const char* at) {
  int32_t number = 0;
  if (field->type == NVTX_PAYLOAD_ENTRY_TYPE_UINT64) {
    uint64_t value = 0;
    memcpy(&value, at, sizeof(value));
    fprintf(stderr, " %s=%llu", field->name, (unsigned long long)value);
    return;
  }
  memcpy(&number, at, sizeof(number));
  for (size_t i = 0; i < nEnums; ++i) {
    if (enums[i].schemaId != field->type) continue;
    for (size_t k = 0; k < enums[i].numEntries; ++k) {
      if ((int32_t)enums[i].entries[k].value != number) continue;
      fprintf(stderr, " %s=%s", field->name, enums[i].entries[k].name);
      return;
    }
  }
  fprintf(stderr, " %s=%d", field->name, number);
}

static int push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  if (domain != (nvtxDomainHandle_t)&domainOfNccl) return -1;
  fprintf(stderr, "nvtx push %s", event->message.ascii);
  if (event->payloadType == NVTX_PAYLOAD_TYPE_EXT) {
    const nvtxPayloadData_t* data = (const nvtxPayloadData_t*)(uintptr_t)event->payload.ullValue;
    for (size_t i = 0; data->schemaId == schema && i < nFields; ++i) {
      printValue(&fields[i], (const char*)data->payload + fields[i].offset);
    }
  }
  fprintf(stderr, "\n");
  return 0;
}

static int pop(nvtxDomainHandle_t domain) {
  (void)domain;
  fprintf(stderr, "nvtx pop\n");
  return 0;
}

static uint64_t registerSchema(nvtxDomainHandle_t domain, const nvtxPayloadSchemaAttr_t* attributes) {
  (void)domain;
  nFields = attributes->numEntries < 16 ? attributes->numEntries : 16;
  memcpy(fields, attributes->entries, nFields * sizeof(fields[0]));
  schema = attributes->schemaId;
  return schema;
}

static uint64_t registerEnum(nvtxDomainHandle_t domain, const nvtxPayloadEnumAttr_t* attributes) {
  (void)domain;
  if (nEnums < 4) enums[nEnums++] = *attributes;
  return attributes->schemaId;
}

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t exportTable) {
  const NvtxExportTableCallbacks* callbacks = (const NvtxExportTableCallbacks*)exportTable(NVTX_ETID_CALLBACKS);
  NvtxFunctionTable table = NULL;
  unsigned int size = 0;
  if (callbacks == NULL || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size)) return 0;
  if (size <= NVTX_CBID_CORE2_DomainDestroy) return 0;
  *table[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)domainCreate;
  *table[NVTX_CBID_CORE2_DomainDestroy] = (NvtxFunctionPointer)domainDestroy;
  *table[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)push;
  *table[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)pop;
  return 1;
}

__attribute__((visibility("default"))) int InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t* module) {
  if (module->moduleId != NVTX_EXT_PAYLOAD_MODULEID) return 0;
  module->segments->functionSlots[NVTX3EXT_CBID_nvtxPayloadSchemaRegister] = (intptr_t)registerSchema;
  module->segments->functionSlots[NVTX3EXT_CBID_nvtxPayloadEnumRegister] = (intptr_t)registerEnum;
  return 1;
}
