// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";

interface IReceivingToken {
    function receiveWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        bytes calldata signature
    ) external;
}

/// @notice Stand-in for the collector that brings EIP-3009 deposits into x402 `batch-settlement` channels, at its well-known
/// address on the sandbox chain. The authorization's nonce names the channel, so that nobody can bring the money to another
/// one. Written from the public interface; it is not the audited contract.
contract SandboxDepositCollector {
    error Unauthorized();
    error TransferFailed();

    address private constant CHANNELS = 0x4020074e9dF2ce1deE5A9C1b5c3f541D02a10003;

    function collect(address payer, address token, uint256 amount, bytes32 channelId, bytes calldata data) external {
        if (msg.sender != CHANNELS) revert Unauthorized();
        (uint256 validAfter, uint256 validBefore, uint256 salt, bytes memory signature) =
            abi.decode(data, (uint256, uint256, uint256, bytes));
        bytes32 nonce = keccak256(abi.encode(channelId, salt));
        IReceivingToken(token).receiveWithAuthorization(
            payer, address(this), amount, validAfter, validBefore, nonce, signature
        );
        if (!IERC20(token).transfer(CHANNELS, amount)) revert TransferFailed();
    }
}
