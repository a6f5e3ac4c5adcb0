// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {SignatureChecker} from "@openzeppelin/contracts/utils/cryptography/SignatureChecker.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";

interface IDepositCollector {
    function collect(address payer, address token, uint256 amount, bytes32 channelId, bytes calldata data) external;
}

/// @notice Stand-in for the contract of x402 `batch-settlement` channels, at its well-known address on the sandbox chain. A
/// payer deposits, the seller claims by the payer's latest voucher, and the rest returns to the payer: by the seller's consent
/// at once, by the payer alone after `withdrawDelay`, within which the seller may still claim. Written from the public
/// interface and EIP-712 types; it is not the audited contract.
contract SandboxChannels {
    struct ChannelConfig {
        address payer;
        address payerAuthorizer;
        address receiver;
        address receiverAuthorizer;
        address token;
        uint40 withdrawDelay;
        bytes32 salt;
    }

    struct Voucher {
        ChannelConfig channel;
        uint128 maxClaimableAmount;
    }

    struct VoucherClaim {
        Voucher voucher;
        bytes signature;
        uint128 totalClaimed;
    }

    struct Channel {
        uint128 balance;
        uint128 totalClaimed;
    }

    struct Withdrawal {
        uint128 amount;
        uint40 initiatedAt;
    }

    struct Receiver {
        uint128 totalClaimed;
        uint128 totalSettled;
    }

    event Settled(address indexed receiver, address indexed token, address indexed sender, uint128 amount);

    error DepositShort();
    error InvalidAmount();
    error InvalidChannel();
    error InvalidNonce();
    error InvalidSignature();
    error ClaimExceedsBalance();
    error ClaimExceedsVoucher();
    error TransferFailed();
    error Unauthorized();
    error WithdrawalNotReady();

    uint40 private constant MIN_DELAY = 15 minutes;
    uint40 private constant MAX_DELAY = 30 days;

    bytes32 public constant CHANNEL_CONFIG_TYPEHASH = keccak256(
        "ChannelConfig(address payer,address payerAuthorizer,address receiver,address receiverAuthorizer,address token,uint40 withdrawDelay,bytes32 salt)"
    );
    bytes32 private constant VOUCHER_TYPEHASH = keccak256("Voucher(bytes32 channelId,uint128 maxClaimableAmount)");
    bytes32 private constant REFUND_TYPEHASH = keccak256("Refund(bytes32 channelId,uint256 nonce,uint128 amount)");
    bytes32 private constant CLAIM_ENTRY_TYPEHASH =
        keccak256("ClaimEntry(bytes32 channelId,uint128 maxClaimableAmount,uint128 totalClaimed)");
    bytes32 private constant CLAIM_BATCH_TYPEHASH = keccak256(
        "ClaimBatch(ClaimEntry[] claims)ClaimEntry(bytes32 channelId,uint128 maxClaimableAmount,uint128 totalClaimed)"
    );
    bytes32 private constant DOMAIN_TYPEHASH =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");

    mapping(bytes32 channelId => Channel) public channels;
    mapping(bytes32 channelId => Withdrawal) public pendingWithdrawals;
    mapping(bytes32 channelId => uint256) public refundNonce;
    mapping(address receiver => mapping(address token => Receiver)) public receivers;

    /// @notice Runs several calls as one, with the sender of this one.
    function multicall(bytes[] calldata data) external returns (bytes[] memory results) {
        results = new bytes[](data.length);
        for (uint256 i; i < data.length; ++i) {
            (bool succeeded, bytes memory result) = address(this).delegatecall(data[i]);
            if (!succeeded) {
                assembly ("memory-safe") {
                    revert(add(result, 32), mload(result))
                }
            }
            results[i] = result;
        }
    }

    /// @notice Adds to a channel what a collector brings. Anyone may call it: the payer's signature is the collector's matter.
    function deposit(ChannelConfig calldata config, uint128 amount, address collector, bytes calldata collectorData)
        external
    {
        if (amount == 0) revert InvalidAmount();
        if (config.receiver == address(0) || config.receiverAuthorizer == address(0)) revert InvalidChannel();
        if (config.withdrawDelay < MIN_DELAY || config.withdrawDelay > MAX_DELAY) revert InvalidChannel();
        bytes32 id = getChannelId(config);
        uint256 before = IERC20(config.token).balanceOf(address(this));
        IDepositCollector(collector).collect(config.payer, config.token, amount, id, collectorData);
        if (IERC20(config.token).balanceOf(address(this)) != before + amount) revert DepositShort();
        channels[id].balance += amount;
    }

    function claim(VoucherClaim[] calldata claims) external {
        for (uint256 i; i < claims.length; ++i) {
            ChannelConfig calldata config = claims[i].voucher.channel;
            if (msg.sender != config.receiver && msg.sender != config.receiverAuthorizer) revert Unauthorized();
            _claim(claims[i]);
        }
    }

    function claimWithSignature(VoucherClaim[] calldata claims, bytes calldata authorizerSignature) external {
        if (claims.length == 0) revert InvalidAmount();
        address authorizer = claims[0].voucher.channel.receiverAuthorizer;
        _requireSigned(authorizer, getClaimBatchDigest(claims), authorizerSignature);
        for (uint256 i; i < claims.length; ++i) {
            if (claims[i].voucher.channel.receiverAuthorizer != authorizer) revert Unauthorized();
            _claim(claims[i]);
        }
    }

    /// @notice Pays a receiver what it has claimed.
    function settle(address receiver, address token) external {
        Receiver storage account = receivers[receiver][token];
        uint128 amount = account.totalClaimed - account.totalSettled;
        if (amount == 0) return;
        account.totalSettled = account.totalClaimed;
        _send(token, receiver, amount);
        emit Settled(receiver, token, msg.sender, amount);
    }

    function initiateWithdraw(ChannelConfig calldata config, uint128 amount) external {
        _requirePayer(config);
        bytes32 id = getChannelId(config);
        if (amount == 0 || amount > channels[id].balance - channels[id].totalClaimed) revert InvalidAmount();
        pendingWithdrawals[id] = Withdrawal(amount, uint40(block.timestamp));
    }

    function finalizeWithdraw(ChannelConfig calldata config) external {
        _requirePayer(config);
        bytes32 id = getChannelId(config);
        Withdrawal memory pending = pendingWithdrawals[id];
        if (pending.initiatedAt == 0 || block.timestamp < pending.initiatedAt + config.withdrawDelay) {
            revert WithdrawalNotReady();
        }
        delete pendingWithdrawals[id];
        _return(config, id, pending.amount);
    }

    function refund(ChannelConfig calldata config, uint128 amount) external {
        if (msg.sender != config.receiver && msg.sender != config.receiverAuthorizer) revert Unauthorized();
        bytes32 id = getChannelId(config);
        refundNonce[id] += 1;
        _return(config, id, amount);
    }

    function refundWithSignature(
        ChannelConfig calldata config,
        uint128 amount,
        uint256 nonce,
        bytes calldata receiverAuthorizerSignature
    ) external {
        bytes32 id = getChannelId(config);
        if (nonce != refundNonce[id]) revert InvalidNonce();
        _requireSigned(config.receiverAuthorizer, getRefundDigest(id, nonce, amount), receiverAuthorizerSignature);
        refundNonce[id] = nonce + 1;
        _return(config, id, amount);
    }

    function getChannelId(ChannelConfig calldata config) public view returns (bytes32) {
        return _digest(
            keccak256(
                abi.encode(
                    CHANNEL_CONFIG_TYPEHASH,
                    config.payer,
                    config.payerAuthorizer,
                    config.receiver,
                    config.receiverAuthorizer,
                    config.token,
                    config.withdrawDelay,
                    config.salt
                )
            )
        );
    }

    function getVoucherDigest(bytes32 channelId, uint128 maxClaimableAmount) public view returns (bytes32) {
        return _digest(keccak256(abi.encode(VOUCHER_TYPEHASH, channelId, maxClaimableAmount)));
    }

    function getRefundDigest(bytes32 channelId, uint256 nonce, uint128 amount) public view returns (bytes32) {
        return _digest(keccak256(abi.encode(REFUND_TYPEHASH, channelId, nonce, amount)));
    }

    function getClaimBatchDigest(VoucherClaim[] calldata claims) public view returns (bytes32) {
        bytes32[] memory entries = new bytes32[](claims.length);
        for (uint256 i; i < claims.length; ++i) {
            entries[i] = keccak256(
                abi.encode(
                    CLAIM_ENTRY_TYPEHASH,
                    getChannelId(claims[i].voucher.channel),
                    claims[i].voucher.maxClaimableAmount,
                    claims[i].totalClaimed
                )
            );
        }
        return _digest(keccak256(abi.encode(CLAIM_BATCH_TYPEHASH, keccak256(abi.encodePacked(entries)))));
    }

    /// An older claim than the latest one changes nothing, so that a batch is not lost to it.
    function _claim(VoucherClaim calldata voucherClaim) private {
        ChannelConfig calldata config = voucherClaim.voucher.channel;
        bytes32 id = getChannelId(config);
        Channel storage channel = channels[id];
        uint128 claimed = channel.totalClaimed;
        if (voucherClaim.totalClaimed <= claimed) return;
        if (voucherClaim.totalClaimed > voucherClaim.voucher.maxClaimableAmount) revert ClaimExceedsVoucher();
        if (voucherClaim.totalClaimed > channel.balance) revert ClaimExceedsBalance();
        address signer = config.payerAuthorizer == address(0) ? config.payer : config.payerAuthorizer;
        _requireSigned(signer, getVoucherDigest(id, voucherClaim.voucher.maxClaimableAmount), voucherClaim.signature);
        receivers[config.receiver][config.token].totalClaimed += voucherClaim.totalClaimed - claimed;
        channel.totalClaimed = voucherClaim.totalClaimed;
    }

    /// Returns at most what is not claimed.
    function _return(ChannelConfig calldata config, bytes32 id, uint128 amount) private {
        Channel storage channel = channels[id];
        uint128 free = channel.balance - channel.totalClaimed;
        uint128 returned = amount < free ? amount : free;
        if (returned == 0) return;
        channel.balance -= returned;
        _send(config.token, config.payer, returned);
    }

    function _send(address token, address to, uint128 amount) private {
        if (!IERC20(token).transfer(to, amount)) revert TransferFailed();
    }

    function _requirePayer(ChannelConfig calldata config) private view {
        if (msg.sender != config.payer && msg.sender != config.payerAuthorizer) revert Unauthorized();
    }

    function _requireSigned(address signer, bytes32 digest, bytes calldata signature) private view {
        if (!SignatureChecker.isValidSignatureNowCalldata(signer, digest, signature)) revert InvalidSignature();
    }

    function _digest(bytes32 structHash) private view returns (bytes32) {
        bytes32 separator = keccak256(
            abi.encode(
                DOMAIN_TYPEHASH, keccak256("x402 Batch Settlement"), keccak256("1"), block.chainid, address(this)
            )
        );
        return keccak256(abi.encodePacked(hex"1901", separator, structHash));
    }
}
