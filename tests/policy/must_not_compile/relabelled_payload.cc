#include "common.h"

// EXPECT: conversion from

namespace molly {
void relabelled_payload() { policy::Payload<policy::Public> payload = a_raw_payload(); }
}  // namespace molly
