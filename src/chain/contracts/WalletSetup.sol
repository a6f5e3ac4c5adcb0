// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {AgentAllowance} from "./AgentAllowance.sol";

/// @notice The part of a Safe that it calls on itself.
interface IOwnSafe {
    function enableModule(address module) external;
    function swapOwner(address previous, address from, address to) external;
}

/// @notice Run by a Safe through delegatecall, once: at its creation or at the hand-over to a new owner.
contract WalletSetup {
    /// @dev Sentinel before the first owner in a Safe's list.
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

    /// @notice Enables modules, and sets the separate allowances of agents and cards.
    function setUp(address[] calldata modules, Allowances calldata allowances) public {
        for (uint256 i = 0; i < modules.length; ++i) IOwnSafe(address(this)).enableModule(modules[i]);
        allowances.module.setPrices(allowances.tokens, allowances.prices);
        allowances.module.setAllowance(allowances.delegate, allowances.module.ANY_AGENT(), allowances.daily);
        allowances.module.setAllowance(allowances.delegate, allowances.cards, allowances.cardsDaily);
        if (allowances.cardsOnce > 0)
            allowances.module.setOnce(allowances.delegate, allowances.cards, allowances.cardsOnce);
    }

    /// @notice The same for a Safe with one owner, which is replaced.
    function handOver(address[] calldata modules, Allowances calldata allowances, address from, address to) external {
        setUp(modules, allowances);
        IOwnSafe(address(this)).swapOwner(SENTINEL, from, to);
    }
}
