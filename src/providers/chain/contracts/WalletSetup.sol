// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {AgentAllowance} from "./AgentAllowance.sol";

/// @notice A Safe, as far as it changes itself.
interface IOwnSafe {
    function enableModule(address module) external;
    function swapOwner(address previous, address from, address to) external;
}

/// @notice What a Safe runs in its own name (by delegatecall): once when it is made, or when it is handed to a new owner.
contract WalletSetup {
    /// @dev What stands before the first owner in a Safe's list.
    address private constant SENTINEL = address(1);

    struct Allowances {
        AgentAllowance module;
        address delegate;
        uint96 daily;
        bytes32 cards;
        uint96 cardsDaily;
        uint96 cardsOnce;
        address[] tokens;
        uint96[] prices;
    }

    /// @notice Switches modules on, and lets agents spend and cards, which share nothing.
    function setUp(address[] calldata modules, Allowances calldata allowances) public {
        for (uint256 i = 0; i < modules.length; ++i) IOwnSafe(address(this)).enableModule(modules[i]);
        allowances.module.setPrices(allowances.tokens, allowances.prices);
        allowances.module.setAllowance(allowances.delegate, allowances.module.ANY_AGENT(), allowances.daily);
        allowances.module.setAllowance(allowances.delegate, allowances.cards, allowances.cardsDaily);
        if (allowances.cardsOnce > 0)
            allowances.module.setOnce(allowances.delegate, allowances.cards, allowances.cardsOnce);
    }

    /// @notice The same for a Safe of one owner, which then belongs to another.
    function handOver(address[] calldata modules, Allowances calldata allowances, address from, address to) external {
        setUp(modules, allowances);
        IOwnSafe(address(this)).swapOwner(SENTINEL, from, to);
    }
}
