// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {SandboxToken} from "./SandboxToken.sol";

/// @notice Stand-in for USDT, which has neither EIP-2612 nor EIP-3009: a plain ERC-20.
contract SandboxTether is SandboxToken {
    function initialize(
        string calldata name_,
        string calldata symbol_,
        uint8 decimals_,
        string calldata
    ) external initializer {
        _initializeToken(name_, symbol_, decimals_);
    }
}
