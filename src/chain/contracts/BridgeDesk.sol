// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {AgentAllowance} from "./AgentAllowance.sol";

interface IBridgeToken {
    function approve(address spender, uint256 units) external returns (bool);
    function transfer(address to, uint256 units) external returns (bool);
    function balanceOf(address owner) external view returns (uint256);
    function allowance(address owner, address spender) external view returns (uint256);
}

interface ITokenMessengerV2 {
    function depositForBurn(
        uint256 amount,
        uint32 destinationDomain,
        bytes32 mintRecipient,
        address burnToken,
        bytes32 destinationCaller,
        uint256 maxFee,
        uint32 minFinalityThreshold
    ) external;
}

/// @notice Burns tokens of a wallet with CCTP v2, to be minted to the same address on another chain. The wallet pays the desk, and
/// the desk burns exactly that, or the whole operation reverts. See BridgeDesk.md.
contract BridgeDesk {
    /// @param units amount that leaves the wallet and is burned.
    /// @param domain of the destination, as Circle numbers chains.
    /// @param maxFee most of it that Circle may keep.
    /// @param minFinality how final the burn must be before it is attested: 1000 confirmed, 2000 finalized.
    struct Order {
        address token;
        uint256 units;
        address messenger;
        uint32 domain;
        uint256 maxFee;
        uint32 minFinality;
    }

    /// @dev Immutables are part of the code, so a Safe that runs it through delegatecall knows the desk.
    address private immutable DESK = address(this);

    bool private transient _isBurning;

    event Bridged(address indexed receiver, address token, uint256 units, uint32 domain);

    error ApprovalLeft();
    error NotBurned(uint256 burned, uint256 units);
    error NotTheDesk();
    error Reentered();

    /// @notice Run by a Safe through delegatecall: pays the desk and burns, for the Safe's own address on the other chain.
    function bridgeFromSafe(Order calldata order) external {
        require(address(this) != DESK, NotTheDesk());
        IBridgeToken(order.token).transfer(DESK, order.units);
        BridgeDesk(DESK).bridge(order, address(this));
    }

    /// @notice Run by the gateway's Safe through delegatecall: pays the desk out of an agent's allowance on `safe`, and burns for the
    /// address of `safe` on the other chain. No other receiver can be named.
    function bridgeForAgent(AgentAllowance module, address safe, bytes32 agent, Order calldata order) external {
        require(address(this) != DESK, NotTheDesk());
        module.transfer(safe, agent, order.token, DESK, order.units);
        BridgeDesk(DESK).bridge(order, safe);
    }

    /// @notice Burns what the desk was paid in the same transaction. The desk holds nothing between transactions.
    function bridge(Order calldata order, address receiver) external {
        require(address(this) == DESK, NotTheDesk());
        require(!_isBurning, Reentered());
        _isBurning = true;
        IBridgeToken token = IBridgeToken(order.token);
        uint256 before = token.balanceOf(address(this));
        token.approve(order.messenger, order.units);
        ITokenMessengerV2(order.messenger).depositForBurn(
            order.units,
            order.domain,
            bytes32(uint256(uint160(receiver))),
            order.token,
            bytes32(0),
            order.maxFee,
            order.minFinality
        );
        token.approve(order.messenger, 0);
        require(token.allowance(address(this), order.messenger) == 0, ApprovalLeft());
        uint256 left = token.balanceOf(address(this));
        // Tokens that somebody has sent to the desk by mistake neither help nor hinder.
        require(left + order.units == before, NotBurned(before - left, order.units));
        emit Bridged(receiver, order.token, order.units, order.domain);
        _isBurning = false;
    }
}
