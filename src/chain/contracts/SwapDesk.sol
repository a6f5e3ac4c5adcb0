// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {AgentAllowance} from "./AgentAllowance.sol";

interface ISwapToken {
    function balanceOf(address owner) external view returns (uint256);
    function allowance(address owner, address spender) external view returns (uint256);
}

/// @notice Executes the call data of a swap route with exactly the amount to sell, away from the wallet.
/// The wallet pays the desk, the desk makes the route's call and hands everything back, or the whole operation reverts.
/// The route's call data, which is a stranger's, therefore never runs with the rights of a wallet: it can neither spend another
/// token, nor leave an approval, nor change an owner. See SwapDesk.md.
contract SwapDesk {
    /// @param units amount of `sell` that leaves the wallet.
    /// @param minReceived amount of `buy` that arrives at least.
    /// @param spender contract that the route lets take the tokens; zero where the call takes none.
    struct Order {
        address sell;
        uint256 units;
        address buy;
        uint256 minReceived;
        address receiver;
        address target;
        address spender;
        bytes data;
    }

    /// @dev Immutables are part of the code, so a Safe that runs it through delegatecall knows the desk.
    address private immutable DESK = address(this);

    bool private transient _isSwapping;

    event Swapped(address indexed receiver, address sell, uint256 sold, address buy, uint256 bought);

    error BelowMinimum(uint256 bought, uint256 minReceived);
    error CallForbidden();
    error NotTheDesk();
    error Reentered();
    error RouteFailed(bytes reason);
    error TokenFailed(address token);
    error WrongToken();

    /// @notice Run by a Safe through delegatecall: pays the desk and swaps.
    function swapFromSafe(Order calldata order) external {
        require(address(this) != DESK, NotTheDesk());
        _transfer(order.sell, DESK, order.units);
        SwapDesk(DESK).swap(order);
    }

    /// @notice Run by the gateway's Safe through delegatecall: pays the desk out of an agent's allowance and swaps.
    function swapForAgent(AgentAllowance module, address safe, bytes32 agent, Order calldata order) external {
        require(address(this) != DESK, NotTheDesk());
        module.transfer(safe, agent, order.sell, DESK, order.units);
        SwapDesk(DESK).swap(order);
    }

    /// @notice Swaps what the desk was paid in the same transaction. The desk holds nothing between transactions.
    function swap(Order calldata order) external {
        require(address(this) == DESK, NotTheDesk());
        require(!_isSwapping, Reentered());
        _isSwapping = true;
        _requirePlainCall(order);
        if (order.spender != address(0)) _approve(order.sell, order.spender, order.units);
        (bool success, bytes memory answer) = order.target.call(order.data);
        require(success, RouteFailed(answer));
        if (order.spender != address(0)) {
            _approve(order.sell, order.spender, 0);
            require(ISwapToken(order.sell).allowance(address(this), order.spender) == 0, TokenFailed(order.sell));
        }
        uint256 bought = ISwapToken(order.buy).balanceOf(address(this));
        require(bought >= order.minReceived && bought > 0, BelowMinimum(bought, order.minReceived));
        uint256 before = ISwapToken(order.buy).balanceOf(order.receiver);
        _transfer(order.buy, order.receiver, bought);
        // A token with a fee arrives with less than was sent.
        uint256 arrived = ISwapToken(order.buy).balanceOf(order.receiver) - before;
        require(arrived >= order.minReceived, BelowMinimum(arrived, order.minReceived));
        uint256 left = ISwapToken(order.sell).balanceOf(address(this));
        if (left > 0) _transfer(order.sell, order.receiver, left);
        emit Swapped(order.receiver, order.sell, order.units - left, order.buy, arrived);
        _isSwapping = false;
    }

    /// @dev The desk never speaks to a token on a route's behalf: no approval of its own can be left for a later swap.
    function _requirePlainCall(Order calldata order) private view {
        require(order.sell != order.buy && order.receiver != address(this), WrongToken());
        require(
            order.target != order.sell && order.target != order.buy && order.target != address(this)
                && order.target != order.receiver && order.target.code.length > 0 && order.data.length >= 4,
            CallForbidden()
        );
        bytes4 selector = bytes4(order.data[:4]);
        require(
            selector != 0x095ea7b3 // approve(address,uint256)
                && selector != 0x39509351 // increaseAllowance(address,uint256)
                && selector != 0xd505accf // permit(address,address,uint256,uint256,uint8,bytes32,bytes32)
                && selector != 0xa22cb465, // setApprovalForAll(address,bool)
            CallForbidden()
        );
    }

    function _approve(address token, address spender, uint256 units) private {
        _call(token, abi.encodeWithSignature("approve(address,uint256)", spender, units));
    }

    function _transfer(address token, address to, uint256 units) private {
        _call(token, abi.encodeWithSignature("transfer(address,uint256)", to, units));
    }

    /// @dev Some tokens return no data on success, but so does an address without code.
    function _call(address token, bytes memory data) private {
        (bool success, bytes memory answer) = token.call(data);
        require(
            success && (answer.length == 0 ? token.code.length > 0 : abi.decode(answer, (bool))), TokenFailed(token)
        );
    }
}
