/** Contract interfaces, limited to the parts in use. */
import { parseAbi, parseAbiItem } from 'viem'

/** Interface of the tokens, with the errors of OpenZeppelin 5. */
export const tokenAbi = parseAbi([
  'function initialize(string name, string symbol, uint8 decimals, string version)',
  'function decimals() view returns (uint8)',
  'function symbol() view returns (string)',
  'function DOMAIN_SEPARATOR() view returns (bytes32)',
  'function mintBatch(address[] to, uint256[] value)',
  'function balanceOf(address account) view returns (uint256)',
  'function nonces(address owner) view returns (uint256)',
  'function transfer(address to, uint256 value) returns (bool)',
  'error ERC20InsufficientBalance(address sender, uint256 balance, uint256 needed)',
  'error ERC20InvalidReceiver(address receiver)',
  'error ERC2612ExpiredSignature(uint256 deadline)',
  'error ERC2612InvalidSigner(address signer, address owner)',
  'error ERC3009InvalidSignature()',
  'error ERC3009InvalidAuthorizationTime(uint256 validAfter, uint256 validBefore)',
  'error ERC3009UsedAuthorization(address authorizer, bytes32 nonce)',
])

/** Emitted once for each executed operation, whether its call succeeded or not. */
export const userOperationEvent = parseAbiItem(
  'event UserOperationEvent(bytes32 indexed userOpHash, address indexed sender, address indexed paymaster, uint256 nonce, bool success, uint256 actualGasCost, uint256 actualGasUsed)',
)

/** Separates the validation of a bundle's operations from their execution. */
export const beforeExecutionEvent = parseAbiItem('event BeforeExecution()')

export const transferEvent = parseAbiItem(
  'event Transfer(address indexed from, address indexed to, uint256 value)',
)

export const authorizationUsedEvent = parseAbiItem(
  'event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)',
)
export const authorizationCanceledEvent = parseAbiItem(
  'event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)',
)

/** Logged by the `upto` proxy of x402 directly behind the transfer that it made. */
export const uptoEvents = {
  settled: parseAbiItem('event Settled()'),
  settledWithPermit: parseAbiItem('event SettledWithPermit()'),
} as const

/** The part of Permit2 in use. It logs nothing when a nonce is used. */
export const permit2Abi = parseAbi([
  'function nonceBitmap(address owner, uint256 word) view returns (uint256 bits)',
  'event UnorderedNonceInvalidation(address indexed owner, uint256 word, uint256 mask)',
  'error InvalidNonce()',
  'error InvalidSigner()',
  'error SignatureExpired(uint256 signatureDeadline)',
])

/** Errors of the `upto` proxy of x402. */
export const uptoProxyAbi = parseAbi([
  'error AmountExceedsPermitted()',
  'error PaymentTooEarly()',
  'error UnauthorizedFacilitator()',
])

/** Channels of x402 `batch-settlement`: the part in use. */
export const channelsAbi = parseAbi([
  'function channels(bytes32 channelId) view returns (uint128 balance, uint128 totalClaimed)',
  'function pendingWithdrawals(bytes32 channelId) view returns (uint128 amount, uint40 initiatedAt)',
  'function receivers(address receiver, address token) view returns (uint128 totalClaimed, uint128 totalSettled)',
])

/** Escrow of x402 `auth-capture`: the part in use. */
export const escrowAbi = parseAbi([
  'function paymentState(bytes32 paymentInfoHash) view returns (bool hasCollectedPayment, uint120 capturableAmount, uint120 refundableAmount)',
])

/** EntryPoint v0.7. @see https://eips.ethereum.org/EIPS/eip-4337 */
export const entryPointAbi = parseAbi([
  'struct PackedUserOperation { address sender; uint256 nonce; bytes initCode; bytes callData; bytes32 accountGasLimits; uint256 preVerificationGas; bytes32 gasFees; bytes paymasterAndData; bytes signature; }',
  'function handleOps(PackedUserOperation[] ops, address beneficiary)',
  'function getNonce(address sender, uint192 key) view returns (uint256 nonce)',
  'error FailedOp(uint256 opIndex, string reason)',
  'error FailedOpWithRevert(uint256 opIndex, string reason, bytes inner)',
])

/** Safe 1.4.1 with its proxy factory, and the 4337 module 0.3.0 with its setup. */
export const safeAbi = parseAbi([
  'function setup(address[] owners, uint256 threshold, address to, bytes data, address fallbackHandler, address paymentToken, uint256 payment, address paymentReceiver)',
  'function getModulesPaginated(address start, uint256 pageSize) view returns (address[] array, address next)',
  'function proxyCreationCode() pure returns (bytes)',
  'function createProxyWithNonce(address singleton, bytes initializer, uint256 saltNonce) returns (address proxy)',
  'function enableModules(address[] modules)',
  'function isOwner(address owner) view returns (bool)',
  'function getOwners() view returns (address[])',
  'function swapOwner(address previous, address from, address to)',
  'function isModuleEnabled(address module) view returns (bool)',
  'function executeUserOpWithErrorString(address to, uint256 value, bytes data, uint8 operation)',
])

/** The part of Multicall3 that is used for writes. @see https://www.multicall3.com */
export const multicallAbi = parseAbi([
  'struct Call3 { address target; bool allowFailure; bytes callData; }',
  'function aggregate3(Call3[] calls) payable',
])

/** The 4337 module of Safes, 0.3.0. */
export const moduleAbi = parseAbi(['function SUPPORTED_ENTRYPOINT() view returns (address)'])

/** `contracts/WalletSetup.sol`, run by a Safe through delegatecall. */
export const walletSetupAbi = parseAbi([
  'struct Allowances { address module; address delegate; uint96 daily; bytes32 cards; uint96 cardsDaily; uint96 cardsOnce; address[] tokens; uint96[] prices; }',
  'function setUp(address[] modules, Allowances allowances)',
  'function handOver(address[] modules, Allowances allowances, address from, address to)',
])

/** `contracts/AgentAllowance.sol`: allowances of agents. */
export const allowanceAbi = parseAbi([
  'function setAllowance(address delegate, bytes32 agent, uint96 daily)',
  'function transfer(address safe, bytes32 agent, address token, address to, uint256 units)',
  'function allowanceOf(address safe, address delegate, bytes32 agent) view returns (uint256 daily, uint256 spent, bool isOwn, uint256 once)',
  'error AllowanceExceeded(uint256 daily, uint256 spent, uint256 value)',
  'error UnknownPrice(address token)',
  'error TransferFailed(bytes reason)',
])

/** `contracts/BridgeDesk.sol`: burns of USDC that is minted on another chain. */
export const bridgeDeskAbi = parseAbi([
  'struct Order { address token; uint256 units; address messenger; uint32 domain; uint256 maxFee; uint32 minFinality; }',
  'function bridgeFromSafe(Order order)',
  'function bridgeForAgent(address module, address safe, bytes32 agent, Order order)',
  'function bridge(Order order, address receiver)',
  'error ApprovalLeft()',
  'error NotBurned(uint256 burned, uint256 units)',
  'error NotTheDesk()',
  'error Reentered()',
  'error AllowanceExceeded(uint256 daily, uint256 spent, uint256 value)',
  'error ERC20InsufficientBalance(address sender, uint256 balance, uint256 needed)',
  'error Error(string reason)',
])

/** `contracts/SwapDesk.sol`: swaps by call data of strangers. */
export const swapDeskAbi = parseAbi([
  'struct Order { address sell; uint256 units; address buy; uint256 minReceived; address receiver; address target; address spender; bytes data; }',
  'function swapFromSafe(Order order)',
  'function swapForAgent(address module, address safe, bytes32 agent, Order order)',
  'function swap(Order order)',
  'error BelowMinimum(uint256 bought, uint256 minReceived)',
  'error CallForbidden()',
  'error NotTheDesk()',
  'error Reentered()',
  'error RouteFailed(bytes reason)',
  'error TokenFailed(address token)',
  'error WrongToken()',
  'error AllowanceExceeded(uint256 daily, uint256 spent, uint256 value)',
  'error ERC20InsufficientBalance(address sender, uint256 balance, uint256 needed)',
])
