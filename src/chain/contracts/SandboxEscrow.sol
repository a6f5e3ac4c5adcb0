// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SandboxEscrowCollector} from "./SandboxEscrowCollector.sol";
import {SandboxTokenStore} from "./SandboxTokenStore.sol";

/// @notice Stand-in for the escrow of x402 `auth-capture`, at its well-known address on the sandbox chain. The operator moves a
/// payment into escrow once, captures it for the receiver before it expires, in parts if it likes, or gives it back; after that
/// only the payer takes what is left. Refunds are taken from the operator. Written from the public interface; it is not the
/// audited contract.
contract SandboxEscrow {
    struct PaymentInfo {
        address operator;
        address payer;
        address receiver;
        address token;
        uint120 maxAmount;
        uint48 preApprovalExpiry;
        uint48 authorizationExpiry;
        uint48 refundExpiry;
        uint16 minFeeBps;
        uint16 maxFeeBps;
        address feeReceiver;
        uint256 salt;
    }

    struct PaymentState {
        bool hasCollectedPayment;
        uint120 capturableAmount;
        uint120 refundableAmount;
    }

    event PaymentCharged(
        bytes32 indexed paymentInfoHash,
        PaymentInfo paymentInfo,
        uint256 amount,
        address tokenCollector,
        uint16 feeBps,
        address feeReceiver
    );
    event PaymentAuthorized(
        bytes32 indexed paymentInfoHash, PaymentInfo paymentInfo, uint256 amount, address tokenCollector
    );
    event PaymentCaptured(bytes32 indexed paymentInfoHash, uint256 amount, uint16 feeBps, address feeReceiver);
    event PaymentVoided(bytes32 indexed paymentInfoHash, uint256 amount);
    event PaymentReclaimed(bytes32 indexed paymentInfoHash, uint256 amount);
    event PaymentRefunded(bytes32 indexed paymentInfoHash, uint256 amount, address tokenCollector);

    error InvalidSender();
    error InvalidAmount();
    error InvalidExpiries();
    error InvalidFee();
    error InvalidCollector();
    error AfterPreApprovalExpiry();
    error AfterAuthorizationExpiry();
    error BeforeAuthorizationExpiry();
    error AfterRefundExpiry();
    error PaymentAlreadyCollected();
    error InsufficientAuthorization();
    error ZeroAuthorization();
    error RefundExceedsCapture();
    error TransferFailed();

    bytes32 public constant PAYMENT_INFO_TYPEHASH = keccak256(
        "PaymentInfo(address operator,address payer,address receiver,address token,uint120 maxAmount,uint48 preApprovalExpiry,uint48 authorizationExpiry,uint48 refundExpiry,uint16 minFeeBps,uint16 maxFeeBps,address feeReceiver,uint256 salt)"
    );
    address private constant COLLECTOR = 0x8612dfdc421f80336cd14E8EF9cb1E765dB5ab88;

    mapping(bytes32 paymentInfoHash => PaymentState state) public paymentState;

    modifier onlySender(address sender) {
        if (msg.sender != sender) revert InvalidSender();
        _;
    }

    function authorize(PaymentInfo calldata info, uint256 amount, address collector, bytes calldata data)
        external
        onlySender(info.operator)
    {
        bytes32 hash = _collect(info, amount, collector, data);
        paymentState[hash].capturableAmount = uint120(amount);
        emit PaymentAuthorized(hash, info, amount, collector);
    }

    function charge(
        PaymentInfo calldata info,
        uint256 amount,
        address collector,
        bytes calldata data,
        uint16 feeBps,
        address feeReceiver
    ) external onlySender(info.operator) {
        bytes32 hash = _collect(info, amount, collector, data);
        paymentState[hash].refundableAmount = uint120(amount);
        emit PaymentCharged(hash, info, amount, collector, feeBps, feeReceiver);
        _distribute(info, amount, feeBps, feeReceiver);
    }

    function capture(PaymentInfo calldata info, uint256 amount, uint16 feeBps, address feeReceiver)
        external
        onlySender(info.operator)
    {
        if (block.timestamp >= info.authorizationExpiry) revert AfterAuthorizationExpiry();
        bytes32 hash = getHash(info);
        PaymentState storage state = paymentState[hash];
        if (amount == 0) revert InvalidAmount();
        if (state.capturableAmount < amount) revert InsufficientAuthorization();
        state.capturableAmount -= uint120(amount);
        state.refundableAmount += uint120(amount);
        emit PaymentCaptured(hash, amount, feeBps, feeReceiver);
        _distribute(info, amount, feeBps, feeReceiver);
    }

    function void(PaymentInfo calldata info) external onlySender(info.operator) {
        (bytes32 hash, uint256 amount) = _giveBack(info);
        emit PaymentVoided(hash, amount);
    }

    function reclaim(PaymentInfo calldata info) external onlySender(info.payer) {
        if (block.timestamp < info.authorizationExpiry) revert BeforeAuthorizationExpiry();
        (bytes32 hash, uint256 amount) = _giveBack(info);
        emit PaymentReclaimed(hash, amount);
    }

    /// @notice The operator has allowed this contract to take the amount; other collectors of refunds are not here.
    function refund(PaymentInfo calldata info, uint256 amount, address collector, bytes calldata)
        external
        onlySender(info.operator)
    {
        if (block.timestamp >= info.refundExpiry) revert AfterRefundExpiry();
        bytes32 hash = getHash(info);
        PaymentState storage state = paymentState[hash];
        if (amount == 0) revert InvalidAmount();
        if (state.refundableAmount < amount) revert RefundExceedsCapture();
        state.refundableAmount -= uint120(amount);
        emit PaymentRefunded(hash, amount, collector);
        address store = _openStore(info.operator);
        if (!IERC20(info.token).transferFrom(info.operator, store, amount)) revert TransferFailed();
        SandboxTokenStore(store).send(info.token, info.payer, amount);
    }

    function getHash(PaymentInfo memory info) public view returns (bytes32) {
        return keccak256(abi.encode(block.chainid, address(this), keccak256(abi.encode(PAYMENT_INFO_TYPEHASH, info))));
    }

    function getTokenStore(address operator) public view returns (address) {
        bytes32 code = keccak256(type(SandboxTokenStore).creationCode);
        bytes32 salt = bytes32(uint256(uint160(operator)));
        return address(uint160(uint256(keccak256(abi.encodePacked(bytes1(0xff), address(this), salt, code)))));
    }

    function _collect(PaymentInfo calldata info, uint256 amount, address collector, bytes calldata data)
        private
        returns (bytes32 hash)
    {
        if (amount == 0 || amount > info.maxAmount) revert InvalidAmount();
        if (block.timestamp >= info.preApprovalExpiry) revert AfterPreApprovalExpiry();
        if (info.preApprovalExpiry > info.authorizationExpiry || info.authorizationExpiry > info.refundExpiry) {
            revert InvalidExpiries();
        }
        if (info.minFeeBps > info.maxFeeBps || info.maxFeeBps > 10_000) revert InvalidFee();
        if (collector != COLLECTOR) revert InvalidCollector();
        hash = getHash(info);
        if (paymentState[hash].hasCollectedPayment) revert PaymentAlreadyCollected();
        paymentState[hash].hasCollectedPayment = true;
        SandboxEscrowCollector(collector).collect(info, _openStore(info.operator), amount, data);
    }

    function _giveBack(PaymentInfo calldata info) private returns (bytes32 hash, uint256 amount) {
        hash = getHash(info);
        amount = paymentState[hash].capturableAmount;
        if (amount == 0) revert ZeroAuthorization();
        paymentState[hash].capturableAmount = 0;
        SandboxTokenStore(getTokenStore(info.operator)).send(info.token, info.payer, amount);
    }

    function _distribute(PaymentInfo calldata info, uint256 amount, uint16 feeBps, address feeReceiver) private {
        if (feeBps < info.minFeeBps || feeBps > info.maxFeeBps) revert InvalidFee();
        if (info.feeReceiver != address(0) && info.feeReceiver != feeReceiver) revert InvalidFee();
        uint256 fee = amount * feeBps / 10_000;
        if (fee > 0 && feeReceiver == address(0)) revert InvalidFee();
        SandboxTokenStore store = SandboxTokenStore(getTokenStore(info.operator));
        if (fee > 0) store.send(info.token, feeReceiver, fee);
        if (amount > fee) store.send(info.token, info.receiver, amount - fee);
    }

    function _openStore(address operator) private returns (address store) {
        store = getTokenStore(operator);
        if (store.code.length == 0) new SandboxTokenStore{salt: bytes32(uint256(uint160(operator)))}();
    }
}
