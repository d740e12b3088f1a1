// Lines that TensorFlow, its compiler and gRPC write at every start on machines where nothing is wrong: the list of
// `platform/yardmaster_runner/noise.py`, which says where each comes from. A test compares the two.

const PREFIX = String.raw`^(?:[IWE]\d{4} \d\d:\d\d:[\d.]+ +\d+ |\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: [IWE] )(?:[\w./+-]{0,120}/)?`;

const BY_FILE = [
  String.raw`cuda_(?:dnn|fft|blas)\.cc:\d+\] Unable to register cu(?:DNN|FFT|BLAS) factory: Attempting to register factory`,
  String.raw`computation_placer\.cc:\d+\] computation placer already registered`,
  String.raw`cudart_stub\.cc:\d+\] (?:Could not find cuda drivers|Ignore above cudart dlerror)`,
  String.raw`cuda_(?:platform|driver)\.cc:\d+\] failed call to cuInit: .{0,80}(?:UNKNOWN ERROR \(303\)|CUDA_ERROR_NO_DEVICE)`,
  String.raw`cuda_diagnostics\.cc:\d+\] (?:env: CUDA_VISIBLE_DEVICES|CUDA_VISIBLE_DEVICES is set|verbose logging is disabled|retrieving CUDA diagnostic|hostname: |libcuda reported|kernel reported|kernel driver does not appear)`,
  String.raw`cuda_(?:executor|gpu_executor)\.cc:\d+\] (?:successful NUMA node read|could not open file to read NUMA node)`,
  String.raw`port\.cc:\d+\] oneDNN custom operations are on\.`,
  String.raw`cpu_feature_guard\.cc:\d+\] This TensorFlow binary is optimized`,
  String.raw`py_utils\.cc:\d+\] TF-TRT Warning: Could not find TensorRT`,
  String.raw`mlir_graph_optimization_pass\.cc:\d+\] None of the MLIR Optimization Passes are enabled`,
  String.raw`dump_mlir_util\.cc:\d+\] disabling MLIR crash reproducer`,
  String.raw`ev_epoll1_linux\.cc:\d+\] grpc epoll fd: `,
  String.raw`(?:fork_posix|fork)\.cc:\d+\] Other threads are currently calling into gRPC, skipping fork\(\) handlers`,
  String.raw`ev_poll_posix\.cc:\d+\] FD from fork parent still in poll list`,
];

const WHOLE = [
  String.raw`^WARNING: All log messages before absl::InitializeLog\(\) is called are written to STDERR$`,
  String.raw`^To enable the following instructions: [A-Z0-9_. ]{1,200}, in other operations, rebuild TensorFlow with the appropriate compiler flags\.$`,
];

const LONGEST = 400;
const NOISE = new RegExp(`${PREFIX}(?:${BY_FILE.join("|")})|${WHOLE.join("|")}`);

export function isNoise(line: string): boolean {
  return /^[IWET12]/.test(line) && NOISE.test(line.slice(0, LONGEST));
}
