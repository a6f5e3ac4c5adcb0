// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";

/// @notice Holds the escrowed tokens of one operator; only the escrow moves them.
contract SandboxTokenStore {
    error Unauthorized();
    error TransferFailed();

    address private constant ESCROW = 0xf96815976523E00e65Be8f34cA5e64b4f41EB19c;

    function send(address token, address to, uint256 amount) external {
        if (msg.sender != ESCROW) revert Unauthorized();
        if (!IERC20(token).transfer(to, amount)) revert TransferFailed();
    }
}
