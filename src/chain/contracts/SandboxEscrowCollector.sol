// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SandboxEscrow} from "./SandboxEscrow.sol";

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

/// @notice Stand-in for the collector that brings EIP-3009 payments into the escrow of x402 `auth-capture`, at its well-known
/// address on the sandbox chain. The authorization's nonce is the hash of the payment's terms, so that they cannot be changed;
/// what is not escrowed of the signed maximum goes back at once. Written from the public interface; it is not the audited contract.
contract SandboxEscrowCollector {
    error Unauthorized();
    error TransferFailed();

    SandboxEscrow private constant ESCROW = SandboxEscrow(0xf96815976523E00e65Be8f34cA5e64b4f41EB19c);

    function collect(SandboxEscrow.PaymentInfo calldata info, address store, uint256 amount, bytes calldata signature)
        external
    {
        if (msg.sender != address(ESCROW)) revert Unauthorized();
        SandboxEscrow.PaymentInfo memory unpaid = info;
        unpaid.payer = address(0);
        IReceivingToken(info.token).receiveWithAuthorization(
            info.payer, address(this), info.maxAmount, 0, info.preApprovalExpiry, ESCROW.getHash(unpaid), signature
        );
        uint256 rest = info.maxAmount - amount;
        if (rest > 0 && !IERC20(info.token).transfer(info.payer, rest)) revert TransferFailed();
        if (!IERC20(info.token).transfer(store, amount)) revert TransferFailed();
    }
}
